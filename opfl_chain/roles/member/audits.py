"""A member's judgement of a round: with its peers, once more, or alone."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from opfl_chain.mpc.audit.judge import Rules, judge
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.mpc.session.session import Session
from opfl_chain.protocol.aggregate import FEWEST_CONTRIBUTIONS, sum_components
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import (
    Claim,
    Delivery,
    Held,
    check_delivery,
    decode_delivery,
    fault_of,
)
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.roles.claims import Claims
from opfl_chain.roles.job import Job
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.view.view import RoundView

_LOGGER = logging.getLogger("opfl.committee")


class Judging:
    """One member's part in judging."""

    def __init__(
        self, job: Job, rank: int, store: MemberStore, claims: Claims, models: Models
    ) -> None:
        self._replays = Replays(job.policy)
        self.rules = Rules(job.policy, job.boundary, self._replays)
        self.expected = self.rules.expected(rank)
        self._store = store
        self._claims = claims
        self._models = models
        self._summed: tuple[int, bytes, Held] | None = None

    def warm(self) -> None:
        """Compile the replays that most rounds need."""
        self._replays.warm()

    def missing(self, round_: RoundView) -> set[Address]:
        """Clients in the round that have delivered nothing to us, as far as is known."""
        return set(self._claims.of(round_)) - self._store.delivered(round_.number)

    def together(self, session: Session, round_: RoundView) -> None:
        """Judge a whole round with the peers, and store the verdict."""
        claims = self._claims.of(round_)
        deliveries = self._deliveries(round_, claims)
        judgement = judge(
            session, self.rules, self.weights(round_), list(claims.values()), deliveries
        )
        verdict = judgement.verdict
        if len(judgement.accepted) >= FEWEST_CONTRIBUTIONS:
            total = sum_components(list(judgement.accepted.values()))
            self._summed = round_.number, verdict.hash, total
        self._store.keep_judgement(round_.number, verdict)
        _LOGGER.info(
            "judged",
            extra={
                "round": round_.number,
                "passed": sorted(verdict.passed),
                "faults": {fault.client: fault.reason.name for fault in verdict.faults},
            },
        )

    def once_more(self, session: Session, round_: RoundView, clients: Collection[Address]) -> None:
        """Replay contributions with fresh randomness, and store which of them pass now."""
        claims = {c: claim for c, claim in self._claims.of(round_).items() if c in clients}
        deliveries = self._deliveries(round_, claims)
        verdict = judge(
            session, self.rules, self.weights(round_), list(claims.values()), deliveries
        ).verdict
        passed = {client for client, claim in claims.items() if claim.client in verdict.passed}
        for client in claims:
            self._store.keep_second_replay(round_.number, client, passed=client in passed)
        _LOGGER.info(
            "replayed again",
            extra={"round": round_.number, "clients": list(clients), "passed": sorted(passed)},
        )

    def alone(self, round_: RoundView) -> Verdict:
        """Judge without MPC, for when a peer is absent.

        A client that would have to be replayed is left out of the aggregate and not charged.
        """
        passed: set[ClientIndex] = set()
        faults: dict[ClientIndex, FaultReason] = {}
        claims = self._claims.of(round_)
        deliveries = self._deliveries(round_, claims)
        for claim in claims.values():
            try:
                check_delivery(self.expected, claim, deliveries.get(claim.client))
            except ProtocolError as error:
                faults[claim.client] = fault_of(error)
                continue
            if not claim.audited and self.expected.scheme is Scheme.SHARES:
                passed.add(claim.client)
        return Verdict.of(passed, faults)

    def summed(self, round_: RoundView, verdict: Verdict) -> Held | None:
        """Our components of the sum of all that passed, or None if some are missing.

        Those of our own verdict were checked and added up when we judged.
        """
        if self._summed is not None and self._summed[:2] == (round_.number, verdict.hash):
            return self._summed[2]
        claims = [
            (client, claim)
            for client, claim in self._claims.of(round_).items()
            if claim.client in verdict.passed
        ]
        if len(claims) != len(verdict.passed) or len(claims) < FEWEST_CONTRIBUTIONS:
            return None
        total: Held | None = None
        for client, claim in claims:  # one after the other: together they may not fit into memory
            try:
                found = self._components(round_, client, claim)
            except ProtocolError:
                return None
            total = found if total is None else sum_components([total, found])
        return total

    def _components(self, round_: RoundView, client: Address, claim: Claim) -> Held:
        """Our components of one gradient, checked, and without a salt."""
        words = self.rules.boundary.coordinates
        delivery = self._deliveries(round_, {client: claim}).get(claim.client)
        own, following = check_delivery(self.expected, claim, delivery).gradient
        return own[:words], following[:words]

    def deliveries(self, round_: RoundView) -> dict[ClientIndex, Delivery]:
        """All deliveries that we have of a round."""
        return self._deliveries(round_, self._claims.of(round_))

    def _deliveries(
        self, round_: RoundView, claims: Mapping[Address, Claim]
    ) -> dict[ClientIndex, Delivery]:
        found = {}
        for client, claim in claims.items():
            if (body := self._store.delivery(round_.number, client)) is not None:
                found[claim.client] = decode_delivery(body, self.expected)
        return found

    def weights(self, round_: RoundView) -> dict[str, NDArray[np.float32]]:
        weights: dict[str, NDArray[np.float32]] = self._models.layout.unflatten(
            self._models.required(round_.model_hash)
        )
        return weights
