"""Exchanges of members on rounds of a played job, signed with their keys."""

from dataclasses import dataclass, field, replace

from opfl_chain.protocol.exchange import Answers, Report, ReportRow, encode_revealed

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.chain.keys import sign_statement
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.published_answers import (
    ANSWERS,
    REPORT,
    PublishedMessage,
    audit_statement,
    encode_round,
)
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.statements import SigningDomain
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.trail.history import History

SUBJECT = b"\x05" * 32
LEAVES = b"\x06" * 32
ACCEPTED = Answer(2, 3, 6, 0), Answer(0, 0, 0, 0), Answer(0, 0, 0, 0)
REJECTED = Answer(2, 3, 6, 1), *ACCEPTED[1:]


@dataclass
class Exchange:
    """The messages of a round whose verdict on chain follows from them, until one is changed."""

    played: object
    number: int
    subjects: list[bytes] = field(default_factory=lambda: [SUBJECT] * 3)
    rows: list[list[ReportRow]] = field(default_factory=lambda: [[], [], []])
    sheets: list[dict[int, Answers]] = field(default_factory=lambda: [{}, {}, {}])

    @classmethod
    def of(cls, played, number):
        self = cls(played, number)
        history = History(played.trail, next(played.trail.of(JobCreated)))
        round_ = history.rounds[number]
        faults = {fault.client: fault.reason for fault in round_.verdict.faults}
        for claim in history.claims(round_):
            self.add(claim.audited, faults.get(claim.client))
        return self

    def add(self, audited, fault):
        """Add the next contribution to all reports, and to the answers if it is audited."""
        place = len(self.rows[0])
        at_once = fault not in (None, FaultReason.REPLAY_OUTSIDE)
        for rank in range(3):
            if at_once:
                self.rows[rank].append(ReportRow(fault))
                continue
            commitment = bytes(32)
            if audited:
                parts = ACCEPTED if fault is None else REJECTED
                own, following = (parts[index] for index in held_indices(rank))
                self.sheets[rank][place] = Answers(rank, b"\x07" * 32, own, following)
                commitment = self.sheets[rank][place].commitment
            self.rows[rank].append(ReportRow(None, LEAVES, commitment))

    def change_answer(self, rank, place, *, commit=True):
        """Change an answer of a member, with or without its commitment."""
        old = self.sheets[rank][place]
        new = replace(old, own=replace(old.own, rest=old.own.rest + 1))
        self.sheets[rank][place] = new
        if commit:
            row = replace(self.rows[rank][place], commitment=new.commitment)
            self.rows[rank][place] = row

    def messages(self):
        found = {}
        heard = [
            Report(rank, self.subjects[rank], tuple(self.rows[rank])).encode() for rank in range(3)
        ]
        for rank in range(3):
            body = encode_revealed(rank, heard, self.sheets[rank])
            found[rank, REPORT] = self.signed(rank, REPORT, heard[rank])
            found[rank, ANSWERS] = self.signed(rank, ANSWERS, body)
        return found

    def signed(self, rank, stage, body, number=None):
        trail = self.played.trail
        statement = audit_statement(
            trail.job, self.number if number is None else number, stage, body
        )
        domain = SigningDomain(trail.chain_id, trail.contracts["Jobs"])
        account = self.played.rehearsal.members[rank].account
        return PublishedMessage(rank, stage, body, sign_statement(account, statement, domain))

    def line(self):
        return encode_round(self.number, list(self.messages().values())) + "\n"
