"""Settles a dispute between the two holders of a component, and names the liar.

Nobody is trusted: the chain binds the component, the signatures bind the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.chain.bindings.events import ClientStatusChanged, JobCreated
from opfl_chain.chain.bindings.types import ClientStatus
from opfl_chain.chain.keys import signer_of
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.mpc.audit.judge import Rules
from opfl_chain.mpc.audit.proved import proved_subject
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.protocol.aggregate import weights_hash
from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.exchange import (
    Answers,
    Report,
    audited_places,
    decode_revealed,
    proof_context,
    settle,
)
from opfl_chain.protocol.hand_over import HandOver
from opfl_chain.protocol.identifiers import Address, ClientIndex, RoundNumber, round_id_of
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofForm
from opfl_chain.protocol.published_answers import (
    ANSWERS,
    REPORT,
    STAGES,
    Messages,
    PublishedMessage,
)
from opfl_chain.protocol.shares import holders_of
from opfl_chain.roles.claims import Batch
from opfl_chain.roles.job import Job
from opfl_chain.rules.registry import rule_of
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.record import Trail
from opfl_chain.trail.report import TrailError

Weights = NDArray[np.float32]
Said = tuple[Report, Mapping[int, Answers]]
"""A report, and the answers by place."""


class EvidenceUnusable(TrailError):
    """Evidence that names nobody, because something about it is not bound or not signed."""


@dataclass(frozen=True)
class Holder:
    """One of the two members that answered on the component."""

    rank: int
    member: Address
    answer: Answer
    lies: bool
    """Its answer is not the one that follows from the component."""
    breaks_commitment: bool
    """It revealed other answers than it had committed to."""
    messages: tuple[PublishedMessage, ...]

    @property
    def document(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "member": self.member,
            "answer": _words(self.answer),
            "lies": self.lies,
            "breaks_commitment": self.breaks_commitment,
            "messages": [message.document for message in self.messages],
        }


@dataclass(frozen=True)
class Settlement:
    """The answer that is right, and what both holders said."""

    job: int
    round: int
    client: int
    component: int
    right: Answer
    holders: tuple[Holder, ...]

    @property
    def named(self) -> tuple[Address, ...]:
        """The members that lie or broke their commitment."""
        return tuple(each.member for each in self.holders if each.lies or each.breaks_commitment)

    @property
    def document(self) -> dict[str, Any]:
        """The evidence, as `--json` writes it."""
        return {
            "job": self.job,
            "round": self.round,
            "client": self.client,
            "component": self.component,
            "recomputed": _words(self.right),
            "named": list(self.named),
            "liars": [each.member for each in self.holders if each.lies],
            "holders": [each.document for each in self.holders],
        }


@dataclass(frozen=True)
class Evidence:
    """What anyone can have of a round, beside the chain."""

    messages: Messages
    """The signed messages of the round."""
    weights: Weights
    """The weights of its model."""
    batch: bytes | None = None
    """The list of its relayed batch, if it has one."""


def settle_dispute(
    job: Job, trail: Trail, number: int, client: int, handed: HandOver, evidence: Evidence
) -> Settlement:
    """Recompute the answer on one component of a contribution, and compare it with both."""
    dispute, ranks = _Dispute.of(job, trail, number, client, evidence), holders_of(handed.component)
    try:
        statement = dispute.statement()
        expected, form = dispute.rules.expected(ranks[0]), ProofForm.of(statement)
        handed.verify(dispute.claims[dispute.place], expected, form)
        said = dispute.said(ranks, statement)
    except ProtocolError as error:
        raise EvidenceUnusable(str(error)) from error
    for rank, (report, sheet) in said.items():
        row = report.rows[dispute.place]
        if row.fault is not None or row.leaves != handed.digest:
            raise EvidenceUnusable(
                f"member {rank} did not report a delivery with the leaf hashes of this component"
                f" (digest 0x{handed.digest.hex()}): it says nothing about its answers"
            )
        if dispute.place not in sheet:
            raise EvidenceUnusable(
                f"member {rank} revealed no answers on client {client} in round {number}: not all"
                " members found the same delivery"
            )
    return dispute.settled(statement, handed, said)


@dataclass(frozen=True)
class _Dispute:
    """What the chain says about a contribution."""

    job: Job
    history: History
    round_: RoundHistory
    rules: Rules
    claims: Sequence[Claim]
    place: int
    """The place of the contribution among the claims."""
    evidence: Evidence

    @classmethod
    def of(cls, job: Job, trail: Trail, number: int, client: int, evidence: Evidence) -> _Dispute:
        created = next(trail.of(JobCreated), None)
        if created is None:
            raise EvidenceUnusable(f"job {trail.job} was never created")
        history = History(trail, created)
        round_ = history.rounds.get(RoundNumber(number))
        if round_ is None or round_.opened is None:
            raise EvidenceUnusable(f"job {trail.job} has no round {number}")
        claims = _claims(job, history, round_, evidence.batch)
        places = [place for place, claim in enumerate(claims) if claim.client == client]
        if not places:
            raise EvidenceUnusable(f"client {client} did not commit in round {number}")
        if not claims[places[0]].audited:
            raise EvidenceUnusable(f"client {client} is not audited in round {number}")
        rules = Rules(job.policy, job.boundary, Replays(job.policy))
        return cls(job, history, round_, rules, claims, places[0], evidence)

    def statement(self) -> Statement:
        """Return the statement of the round's steps, if these are the weights of its model."""
        tolerance = rule_of(self.rules.boundary).tolerance(self.rules.boundary)
        if tolerance is None:
            raise EvidenceUnusable(
                f"audits of job {self.history.trail.job} are {self.rules.policy.replay.kind}, not"
                " proved: there are no answers to settle"
            )
        weights, wanted = self.evidence.weights, self._model_hash
        if weights.size != model_of(self.rules.policy).layout.size:
            raise EvidenceUnusable(
                f"the weights are {weights.size:,} numbers, the model of the job has"
                f" {model_of(self.rules.policy).layout.size:,}"
            )
        if weights_hash(weights) != wanted:
            raise EvidenceUnusable(
                f"the weights have the hash 0x{weights_hash(weights).hex()}, round"
                f" {self.round_.number} is at model 0x{wanted.hex()}"
            )
        return statement_of(self.rules.policy, tolerance, self._named_weights)

    def said(self, ranks: Sequence[int], statement: Statement) -> dict[int, Said]:
        """Return the reports and the answers that these members signed.

        What a member reveals follows from the reports of all.
        """
        messages, members = self.evidence.messages, range(COMPONENTS)
        for stage in STAGES:
            for rank in members if stage == REPORT else ranks:
                self._require_signed(rank, stage, messages.get((rank, stage)))
        subject = proved_subject(self.rules, self._named_weights, self.claims, statement)
        heard = [messages[rank, REPORT].body for rank in members]
        reports = [Report.decode(heard[rank], rank, subject, len(self.claims)) for rank in members]
        places = audited_places(self.claims, reports)
        return {
            rank: (
                reports[rank],
                decode_revealed(messages[rank, ANSWERS].body, rank, heard, places),
            )
            for rank in ranks
        }

    def _require_signed(self, rank: int, stage: str, message: PublishedMessage | None) -> None:
        trail, member = self.history.trail, self.history.terms.members[rank]
        if message is None:
            raise EvidenceUnusable(f"the answers have no {stage} of member {rank}")
        statement = message.statement(trail.job, self.round_.number)
        if (signer := signer_of(statement, self.job.domain, message.signature)) != member:
            raise EvidenceUnusable(
                f"the {stage} of member {rank} is signed by {signer or 'nobody'}, not by {member}"
            )

    def settled(
        self, statement: Statement, handed: HandOver, said: Mapping[int, Said]
    ) -> Settlement:
        claim = self.claims[self.place]
        context = proof_context(
            self.job.domain.separator,
            round_id_of(self.job.id, self.round_.number),
            claim.client,
            self._model_hash,
            claim.commitment,
            handed.input_commitment,
        )
        query = Query.of(statement, context, handed.proof_leaves)
        expected = self.rules.expected(holders_of(handed.component)[0])
        gradient = handed.gradient.words(expected.gradient_words)
        words = handed.training_input.words(expected.input_words)
        given = {rank: sheet[self.place] for rank, (_, sheet) in said.items()}
        answers = {rank: each.by_component()[handed.component] for rank, each in given.items()}
        liars = settle(query, handed.proof, gradient, words, answers)
        holders = tuple(
            Holder(
                rank,
                self.history.terms.members[rank],
                answers[rank],
                rank in liars,
                given[rank].commitment != report.rows[self.place].commitment,
                tuple(self.evidence.messages[rank, stage] for stage in STAGES),
            )
            for rank, (report, _) in said.items()
        )
        return Settlement(
            self.job.id,
            self.round_.number,
            claim.client,
            handed.component,
            query.answer(handed.proof, gradient, words),
            holders,
        )

    @property
    def _model_hash(self) -> bytes:
        assert self.round_.opened is not None
        return self.round_.opened.event.model_hash

    @cached_property
    def _named_weights(self) -> dict[str, Weights]:
        layout = model_of(self.rules.policy).layout
        named: dict[str, Weights] = layout.unflatten(self.evidence.weights)
        return named


def _claims(job: Job, history: History, round_: RoundHistory, listed: bytes | None) -> list[Claim]:
    """Return all claims of a round in the order of clients, as members see them."""
    commitments = {client: each.event.commitment for client, each in round_.direct.items()}
    if round_.batch is not None:
        root = round_.batch.event.root
        if listed is None:
            raise EvidenceUnusable(
                f"round {round_.number} has a relayed batch, whose clients the chain does not list:"
                f" give its list (GET /batches/0x{root.hex()} of the server or a member)"
            )
        batch = Batch.decode(job, round_.number, root, listed)
        if batch is None:
            raise EvidenceUnusable(f"the list is not that of the batch 0x{root.hex()} on chain")
        for client, entry in batch.signed.items():
            if client not in commitments and _may_be_relayed(history, round_, client):
                commitments[client] = entry.commitment
    found = [
        Claim(
            ClientIndex(history.clients[client].event.index),
            round_.number,
            commitment,
            history.dataset_roots[client],
            round_.is_audited(client),
        )
        for client, commitment in commitments.items()
    ]
    return sorted(found, key=lambda claim: claim.client)


def _may_be_relayed(history: History, round_: RoundHistory, client: Address) -> bool:
    """Return whether a client was active when the round closed."""
    if client not in history.clients or round_.schedule is None:
        return False
    changes = [
        entry.event.status
        for entry in history.trail.of(ClientStatusChanged)
        if entry.event.client == client and entry.block <= round_.schedule.commit
    ]
    return not changes or changes[-1] is ClientStatus.ACTIVE


def _words(answer: Answer) -> list[str]:
    return [f"{word:#034x}" for word in answer.words]
