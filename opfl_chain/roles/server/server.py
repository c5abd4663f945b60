"""The server: moves rounds on, serves models, relays commitments. Nobody has to trust it."""

from __future__ import annotations

from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar

from opfl_chain.chain.bindings.types import ClientStatus
from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import checksum, tohex, unhex
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.statements import GradientCommitment
from opfl_chain.roles import claims
from opfl_chain.roles import model_store as models
from opfl_chain.roles.claims import Batch, Claims, Entry
from opfl_chain.roles.content import content_routes
from opfl_chain.roles.member.sums import Sums
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.round_driver import RoundDriver
from opfl_chain.roles.settings import ServerSettings
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.routes import Refusal, Request, Response, Route

if TYPE_CHECKING:
    from opfl_chain.roles.server.scorer import Scorer


_BATCH_MARGIN = 5
"""The batch goes on chain this many blocks before the deadline, or once all clients are in it."""


class Server(Node):
    ROLE = "server"
    ROUND_DRIVER: ClassVar[type[RoundDriver]] = RoundDriver
    SCHEMA: ClassVar[str] = (
        models.SCHEMA
        + claims.SCHEMA
        + """
    CREATE TABLE IF NOT EXISTS relayed (
        round INTEGER, client TEXT, commitment BLOB, signature BLOB, PRIMARY KEY (round, client)
    );
    CREATE TABLE IF NOT EXISTS opened (round INTEGER PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS accuracies (round INTEGER PRIMARY KEY, accuracy REAL);
    """
    )

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self._settings = settings
        self.models = Models(self.view, self.state)
        self.claims = Claims(self.view, self.state, self.peers, self.backoff())
        self._sums = Sums(self.view, self.peers)
        self._round_driver = self.ROUND_DRIVER(self)
        self._stillborn = False

    @property
    def done(self) -> bool:
        return self._stillborn or (self.view.is_closed and self._all_scored())

    def routes(self) -> list[Route]:
        return [
            *content_routes(self.models, self.claims),
            Route(
                "POST",
                "/rounds/{round}/commitments/{client}",
                self._take_commitment,
                max_body_bytes=32,
                signed=True,
            ),
        ]

    def health(self) -> dict[str, Any]:
        rows = self.state.all("SELECT round, accuracy FROM accuracies ORDER BY round")
        return {"accuracies": dict(rows)}

    # --- duties

    def act(self, now: Moment) -> None:
        round_ = self.view.latest_round()
        if round_ is not None and round_.over is None:
            with self.duty("batch"):
                self._relay(round_, now)
            with self.duty("sum"):
                self._open_aggregate(round_)
        with self.duty("moving on"):
            self._round_driver.act(now, 0)
        with self.duty("models"):
            self.models.follow(self.peers.fetch_aggregate)
        self._score()
        self._stillborn = self.is_stillborn(now)

    def _open_aggregate(self, round_: RoundView) -> None:
        """Open the sum as members do, so that the next model is here when the round ends."""
        verdict = self.view.decided_verdict(round_) if round_.verdict_hash else None
        if verdict is None or self.state.one("SELECT 1 FROM opened WHERE round = ?", round_.number):
            return
        if (words := self._sums.open(round_)) is None:
            self.agenda.again()
        else:
            self.models.propose(round_, words, len(verdict.passed))
            self.state.write("INSERT OR IGNORE INTO opened VALUES (?)", round_.number)

    # --- relaying

    def _take_commitment(self, request: Request) -> Response:
        round_ = self._committing_round(request.parts["round"])
        try:
            client, signature = (
                checksum(request.parts["client"]),
                unhex(request.headers.get("opfl-signature", "")),
            )
        except ValueError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, "malformed address or signature") from error
        if self.view.client_status(client) is not ClientStatus.ACTIVE:
            raise Refusal(HTTPStatus.FORBIDDEN, f"{client} is not an active client of this job")
        if len(request.body) != 32:
            raise Refusal(HTTPStatus.BAD_REQUEST, "a commitment must have 32 bytes")
        statement = GradientCommitment(self.job.id, round_.number, client, request.body)
        if signer_of(statement, self.job.domain, signature) != client:
            raise Refusal(HTTPStatus.UNAUTHORIZED, "the commitment is not signed by the client")
        self._keep_commitment(round_, client, request.body, signature)
        return Response.json({"taken": True})

    def _keep_commitment(
        self, round_: RoundView, client: Address, commitment: bytes, signature: bytes
    ) -> None:
        values = round_.number, client, commitment, signature
        self.state.write("INSERT OR IGNORE INTO relayed VALUES (?, ?, ?, ?)", *values)
        kept = "SELECT commitment FROM relayed WHERE round = ? AND client = ?"
        if self.state.one(kept, round_.number, client)[0] != commitment:
            raise Refusal(HTTPStatus.CONFLICT, "another commitment of this client is stored")
        count = "SELECT count(*) FROM relayed WHERE round = ?"
        if self.state.one(count, round_.number)[0] >= len(self.view.clients()):
            self.wake()

    def _committing_round(self, text: str) -> RoundView:
        round_, moment = self.view.latest_round(), self.moment
        if round_ is not None and moment is not None and text == str(round_.id):
            open_ = self.view.batch(round_.id) is None
            if open_ and moment.head < round_.schedule.commit:
                return round_
        raise Refusal(HTTPStatus.GONE, "no commitments are relayed for this round (any more)")

    def _relay(self, round_: RoundView, now: Moment) -> None:
        if self.view.batch(round_.id) is not None or now.has_come(round_.schedule.commit):
            return
        rows = self.state.all(
            "SELECT client, commitment, signature FROM relayed WHERE round = ? ORDER BY client",
            round_.number,
        )
        active = [
            client
            for client in self.view.clients()
            if self.view.client_status(client) is ClientStatus.ACTIVE
        ]
        complete = len(rows) >= len(active)
        if not (complete or now.has_come(round_.schedule.commit - _BATCH_MARGIN)) or not rows:
            return
        batch = Batch(self.job, round_.number, [Entry(*row) for row in rows])
        root = batch.tree.root
        self.claims.keep(root, batch.encode())
        call = self.job.contracts.jobs.commit_batch(round_.id, root, len(batch.entries))
        self.send(call, f"batch {round_.number} {tohex(root)}")

    # --- accuracy

    @cached_property
    def _scorer(self) -> Scorer:
        from opfl_chain.roles.server.scorer import Scorer  # loads torch

        return Scorer(self.job.policy, str(self._settings.test_dataset), self._settings.data_dir)

    def _score(self) -> None:
        if self._settings.test_dataset is None:
            return
        for number, model_hash in self._models_to_score():
            if self.state.one("SELECT 1 FROM accuracies WHERE round = ?", number):
                continue
            weights = self.models.weights(model_hash)
            if weights is None:
                continue
            accuracy = self._scorer.accuracy(self.models.layout.unflatten(weights))
            self.state.write("INSERT OR IGNORE INTO accuracies VALUES (?, ?)", number, accuracy)
            self.log.info("scored", extra={"updates": number, "accuracy": accuracy})

    def _models_to_score(self) -> list[tuple[int, bytes]]:
        first = [(0, self.job.terms.model_hash)]
        final = self.view.finalised_rounds()
        return first + [(r.number + 1, r.next_model_hash) for r in final if r.next_model_hash]

    def _all_scored(self) -> bool:
        if self._settings.test_dataset is None:
            return True
        scored = self.state.one("SELECT count(*) FROM accuracies")[0]
        return bool(scored >= len(self._models_to_score()))
