"""Settles a dispute between the two holders of a component, and names the liar.

Nobody is trusted: the chain binds the component, and signatures bind what the holders said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.chain.keys import signer_of
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.mpc.audit.judge import Rules
from opfl_chain.mpc.audit.proved import proved_subject
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.protocol.aggregate import weights_hash
from opfl_chain.protocol.audit_exchange import Report, ReportRow, Reveal, proof_context
from opfl_chain.protocol.bundle import Bundle, check_bundle, context, input_path
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.disputed import DisputedComponent
from opfl_chain.protocol.echo import Slot, slot_number
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address, ClientIndex, round_id_of
from opfl_chain.protocol.inputs import is_input_of_round
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.published_answers import PublishedMessage, PublishedRound
from opfl_chain.protocol.shares import holders_of
from opfl_chain.protocol.unsealing import open_answer_component, open_gradient_component
from opfl_chain.roles.job import Job
from opfl_chain.rules.registry import rule_of
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.record import Trail
from opfl_chain.trail.report import TrailError


class EvidenceUnusable(TrailError):
    """Evidence that names nobody, because something about it is not bound or not signed."""


@dataclass(frozen=True)
class Holder:
    """One of the two members that answered on the component."""

    seat: int
    member: Address
    answer: Answer
    lies: bool
    """True if its answer does not follow from the component."""
    breaks_commitment: bool
    """True if it revealed other words than it had committed to."""
    messages: tuple[PublishedMessage, PublishedMessage]
    """Its signed report and words."""

    @property
    def document(self) -> dict[str, Any]:
        return {
            "seat": self.seat,
            "member": self.member,
            "answer": words_of(self.answer),
            "lies": self.lies,
            "breaks_commitment": self.breaks_commitment,
            "messages": [message.document for message in self.messages],
        }


@dataclass(frozen=True)
class Settlement:
    """The answer that is right, and what both holders said."""

    handed: DisputedComponent
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
            "round": self.handed.round,
            "opening": f"0x{self.handed.opening.hex()}",
            "session": self.handed.attempt,
            "client": self.handed.client,
            "component": self.handed.component,
            "recomputed": words_of(self.right),
            "named": list(self.named),
            "holders": [each.document for each in self.holders],
        }


def words_of(answer: Answer) -> list[str]:
    """Return the words of an answer in hexadecimal."""
    return [f"{word:#034x}" for word in answer.words]


def settle_dispute(
    job: Job, trail: Trail, published: PublishedRound, handed: DisputedComponent
) -> Settlement:
    """Recompute the answer on one component of a contribution, and compare it with both."""
    try:
        return _Dispute.of(job, trail, handed).settled(published)
    except ProtocolError as error:
        raise EvidenceUnusable(str(error)) from error


@dataclass(frozen=True)
class _Dispute:
    """The facts on chain about a session, and the component that was handed over."""

    job: Job
    history: History
    round_: RoundHistory
    rules: Rules
    claims: Mapping[ClientIndex, Claim]
    handed: DisputedComponent

    @classmethod
    def of(cls, job: Job, trail: Trail, handed: DisputedComponent) -> _Dispute:
        history = History(trail, next(trail.of(JobCreated)))
        round_ = history.rounds.get(handed.round)
        if round_ is None or round_.opened is None:
            raise EvidenceUnusable(f"job {trail.job} has no round {handed.round}")
        if round_.opened.event.opening != handed.opening:
            raise EvidenceUnusable(f"the component is of another opening of round {handed.round}")
        if round_.pairs is None:
            raise EvidenceUnusable(
                "the chain has the root of the roll alone (`publicRoll` of the terms is off), so it"
                " does not bind commitments to clients"
            )
        if handed.client not in handed.answers:
            raise EvidenceUnusable(f"the session has no answer of client {handed.client}")
        commitments, claims = dict(round_.pairs), {}
        for index in sorted(handed.answers):
            if index not in commitments:
                raise EvidenceUnusable(f"client {index} is not on the roll of round {handed.round}")
            client = history.client_at[index]
            audited, root = round_.is_audited(client), history.dataset_roots[client]
            claims[index] = Claim(index, handed.round, commitments[index], root, audited)
        rules = Rules(job.policy, job.boundary, Replays(job.policy))
        return cls(job, history, round_, rules, claims, handed)

    def settled(self, published: PublishedRound) -> Settlement:
        if published.opening != self.handed.opening:
            raise EvidenceUnusable("the answers are of another opening of the round")
        statement, subject = self._statement()
        right = self._recomputed(statement)
        holders = tuple(
            self._holder(seat, published, subject, right)
            for seat in holders_of(self.handed.component)
        )
        return Settlement(self.handed, right, holders)

    def _statement(self) -> tuple[Statement, bytes]:
        """Return the statement of the round's steps, and the subject of reports on them."""
        tolerance = rule_of(self.rules.boundary).tolerance(self.rules.boundary)
        if tolerance is None:
            raise EvidenceUnusable(
                f"audits of job {self.job.id} are {self.rules.policy.replay.kind}, not proved:"
                " there are no answers to settle"
            )
        assert self.round_.opened is not None
        layout, wanted = model_of(self.rules.policy).layout, self.round_.opened.event.model_hash
        if len(self.handed.weights) != 4 * layout.size:
            raise EvidenceUnusable(
                f"weights of {len(self.handed.weights):,} bytes: the model has {layout.size:,}"
            )
        flat = np.frombuffer(self.handed.weights, "<f4").astype(np.float32)
        if weights_hash(flat) != wanted:
            raise EvidenceUnusable(
                f"the weights have the hash 0x{weights_hash(flat).hex()}, round {self.handed.round}"
                f" is at model 0x{wanted.hex()}"
            )
        weights = layout.unflatten(flat)
        statement = statement_of(self.rules.policy, tolerance, weights)
        facts = proved_subject(self.rules, weights, list(self.claims.values()), statement)
        contents = (self.handed.answers[index] for index in self.claims)
        return statement, keccak256(facts, *contents)

    def _recomputed(self, statement: Statement) -> Answer:
        """Return the answer on the component, which chain and signed reports bind."""
        handed, claim = self.handed, self.claims[self.handed.client]
        expected = self.rules.expected(holders_of(handed.component)[0])
        contribution = self._bundle(BundleKind.CONTRIBUTION, handed.contribution)
        answer = self._bundle(BundleKind.ANSWER, handed.answer)
        if contribution.commitment != claim.commitment:
            raise EvidenceUnusable("the contribution has another commitment than the roll on chain")
        if answer.content_hash != handed.answers[handed.client]:
            raise EvidenceUnusable("the answer is not the one that the session is about")
        path = list(input_path(answer, expected))
        if not is_input_of_round(claim.dataset_root, handed.round, answer.commitment, path):
            raise EvidenceUnusable("the input is not in the client's data set at this round")
        gradient = open_gradient_component(
            contribution, handed.component, handed.gradient_key, expected
        )
        given, part, leaves = open_answer_component(
            answer, handed.component, handed.answer_key, expected
        )
        name = proof_context(
            self.job.domain.separator,
            round_id_of(self.job.id, handed.round),
            handed.opening,
            handed.client,
            contribution.commitment,
            answer.commitment,
        )
        return Query.of(statement, name, leaves).answer(
            part,
            gradient.words(expected.package_words(expected.gradient_words)),
            given.words(expected.package_words(expected.input_words)),
        )

    def _bundle(self, kind: BundleKind, data: bytes) -> Bundle:
        expected = self.rules.expected(0)
        bundle = Bundle.decode(data, Limits.of(kind, expected))
        client, round_id = (
            self.history.client_at[self.handed.client],
            round_id_of(self.job.id, self.handed.round),
        )
        place = context(self.job.domain.separator, round_id, self.handed.opening, client, kind)
        check_bundle(bundle, place, expected)
        return bundle

    def _holder(
        self, seat: int, published: PublishedRound, subject: bytes, right: Answer
    ) -> Holder:
        member = self.round_.seats[seat]
        reported = self._signed(member, Slot.REPORT, published)
        revealed = self._signed(member, Slot.REVEAL, published)
        row = Report.decode(reported.body, seat, subject).rows.get(self.handed.client)
        words = Reveal.decode(revealed.body, seat).answers.get(self.handed.client)
        if not isinstance(row, ReportRow) or words is None:
            raise EvidenceUnusable(
                f"{member} gave no words on client {self.handed.client}: there is nothing to settle"
            )
        said = words.by_component()[self.handed.component]
        broke = words.commitment != row.commitment
        return Holder(seat, member, said, said != right, broke, (reported, revealed))

    def _signed(self, member: Address, slot: Slot, published: PublishedRound) -> PublishedMessage:
        """Return what a member said in a slot of the session, signed by it."""
        place = self.history.roster.index(member), slot_number(slot, self.handed.attempt)
        message = published.messages.get(place)
        if message is None:
            raise EvidenceUnusable(f"the answers have no {slot.name.lower()} of {member}")
        statement = message.statement(self.job.id, self.handed.round, self.handed.opening)
        if signer_of(statement, self.job.domain, message.signature) != member:
            raise EvidenceUnusable(f"the {slot.name.lower()} of {member} is not signed by it")
        return message
