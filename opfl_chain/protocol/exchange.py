"""The exchange among members on a round of proved steps, as pure functions.

Each member first reports what it found in every delivery, with a commitment to its answers, so that
nobody can copy another's. Then it reveals the answers. Every component has two holders: where their
answers differ one of them lies, the audit is aborted, and nobody is charged on one member's word.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.hashing import sha256, tag
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.proof.answers import Query, accepts
from opfl_chain.protocol.proof.folding import ANSWER_WORDS, Answer
from opfl_chain.protocol.proof.package import ProofComponent
from opfl_chain.protocol.ring import UnsignedWords
from opfl_chain.protocol.shares import HASH_BYTES, held_indices
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.protocol.widths import bytes32, unsigned_bytes

TAG_CONTEXT: Final = tag("proof-context")
TAG_ANSWERS: Final = tag("proof-answers")
ANSWER_BYTES: Final = 16 * ANSWER_WORDS
MOST_FAULTS_OF_ONE: Final = 1
"""A fault that so many members report charges nobody: it may be a lie."""

_REPORT: Final = struct.Struct(">4sBBI")
"""Magic, version, rank, number of contributions."""
_REPORT_MAGIC: Final = b"OPFR"
_SHEET_MAGIC: Final = b"OPFA"
_VERSION: Final = 1
_ROW_BYTES: Final = 1 + 2 * HASH_BYTES
_SHEET_ROW: Final = struct.Struct(f">I{HASH_BYTES}s{2 * ANSWER_BYTES}s")


def proof_context(
    separator: bytes,
    round_id: int,
    client: int,
    model_hash: bytes,
    gradient_commitment: bytes,
    input_commitment: bytes,
) -> bytes:
    """Return the digest that names the one contribution that a proof is about."""
    return sha256(
        TAG_CONTEXT,
        bytes32("domain separator", separator),
        unsigned_bytes("round identifier", round_id, 96),
        unsigned_bytes("client", client, 32),
        bytes32("model hash", model_hash),
        bytes32("gradient commitment", gradient_commitment),
        bytes32("input commitment", input_commitment),
    )


@dataclass(frozen=True)
class Answers:
    """A member's answers on one contribution, for its own component and the following one."""

    rank: int
    transcript: bytes
    own: Answer
    following: Answer

    @classmethod
    def of(cls, rank: int, query: Query, found: Mapping[int, Answer]) -> Answers:
        """Take the answers for the components that a member holds."""
        own, following = held_indices(rank)
        return cls(rank, query.transcript, found[own], found[following])

    def encode(self) -> bytes:
        """Return the canonical bytes of both answers."""
        return self.own.encode() + self.following.encode()

    @property
    def commitment(self) -> bytes:
        """The hash that the member reports before it reveals the answers."""
        return sha256(TAG_ANSWERS, bytes([self.rank]), self.transcript, self.encode())

    def by_component(self) -> dict[int, Answer]:
        """Return the answers by component."""
        return dict(zip(held_indices(self.rank), (self.own, self.following), strict=True))


@dataclass(frozen=True)
class ReportRow:
    """What a member found in one delivery: a fault, or the digest of all leaf hashes in it."""

    fault: FaultReason | None
    leaves: bytes = bytes(HASH_BYTES)
    commitment: bytes = bytes(HASH_BYTES)
    """The commitment to the answers; zero if the contribution is not audited, or at fault."""


@dataclass(frozen=True)
class Report:
    """What a member found in a round, in the order of the claims."""

    rank: int
    subject: bytes
    """A digest of the facts that must be the same for all members."""
    rows: tuple[ReportRow, ...]

    def encode(self) -> bytes:
        """Return the wire format."""
        header = _REPORT.pack(_REPORT_MAGIC, _VERSION, self.rank, len(self.rows))
        rows = (bytes([row.fault or 0]) + row.leaves + row.commitment for row in self.rows)
        return b"".join([header, bytes32("subject", self.subject), *rows])

    @classmethod
    def decode(cls, data: bytes, rank: int, subject: bytes, count: int) -> Report:
        """Read the report of a member on a round whose facts are known."""
        expected = _REPORT.pack(_REPORT_MAGIC, _VERSION, rank, count) + subject
        if data[: len(expected)] != expected:
            raise ShareError(
                f"the report is not one of member {rank} on the same {count:,} contributions,"
                " policy, boundary and weights"
            )
        body = data[len(expected) :]
        if len(body) != count * _ROW_BYTES:
            raise ShareError(f"the report has {len(body):,} bytes for {count:,} contributions")
        rows = (_row(body[at : at + _ROW_BYTES]) for at in range(0, len(body), _ROW_BYTES))
        return cls(rank, subject, tuple(rows))


def stated_subject(data: bytes) -> tuple[bytes, int]:
    """Return the subject of a report, and the number of contributions, as the report states them.

    For a reader that does not know both. `Report.decode` then reads the rest.
    """
    size = _REPORT.size + HASH_BYTES
    if len(data) < size or data[: len(_REPORT_MAGIC)] != _REPORT_MAGIC:
        raise ShareError(f"the message of {len(data):,} bytes is not a report")
    *_, count = _REPORT.unpack_from(data)
    return data[_REPORT.size : size], int(count)


def _row(data: bytes) -> ReportRow:
    code = data[0]
    if code not in {0, *FaultReason}:
        raise ShareError(f"the report has the unknown fault {code}")
    fault = FaultReason(code) if code else None
    return ReportRow(fault, data[1 : 1 + HASH_BYTES], data[1 + HASH_BYTES :])


def encode_answers(rank: int, answers: Mapping[int, Answers]) -> bytes:
    """Encode a member's answers on several contributions, by their place among the claims."""
    header = _REPORT.pack(_SHEET_MAGIC, _VERSION, rank, len(answers))
    rows = (
        _SHEET_ROW.pack(place, each.transcript, each.encode())
        for place, each in sorted(answers.items())
    )
    return b"".join([header, *rows])


def decode_answers(data: bytes, rank: int, places: Sequence[int]) -> dict[int, Answers]:
    """Read a member's answers on the contributions at these places."""
    found = decode_sheet(data, rank, len(places))
    if list(found) != sorted(places):
        raise ShareError(f"member {rank} answers on contributions {list(found)}, not {places}")
    return found


def decode_sheet(data: bytes, rank: int, count: int) -> dict[int, Answers]:
    """Read a member's answers on so many contributions, by their place among the claims."""
    header = _REPORT.pack(_SHEET_MAGIC, _VERSION, rank, count)
    if data[: len(header)] != header or len(data) != answers_bytes(count):
        raise ShareError(f"the answers are not those of member {rank} on {count:,} contributions")
    found = {}
    for place, transcript, both in _SHEET_ROW.iter_unpack(data[len(header) :]):
        own, following = (Answer.decode(both[at : at + ANSWER_BYTES]) for at in (0, ANSWER_BYTES))
        found[place] = Answers(rank, transcript, own, following)
    if len(found) != count:
        raise ShareError(f"member {rank} answers twice on one contribution")
    return found


def contradict(first: bytes, second: bytes) -> bool:
    """Return whether an honest member cannot have said both, at one stage of an exchange.

    It may report on other facts, and then answer to other reports, after a reorganisation: both
    messages begin with what they are about.
    """
    size = _REPORT.size + HASH_BYTES
    if first[: len(_REPORT_MAGIC)] != _REPORT_MAGIC:
        size = HASH_BYTES * COMPONENTS
    return first != second and first[:size] == second[:size]


class HeardOtherwise(ShareError):
    """A member says that it heard another report of a peer than we did.

    Either the peer signed two reports, or the member lies: whoever shows the signed report that it
    heard names the other.
    """

    def __init__(self, rank: int, about: int) -> None:
        super().__init__(f"member {rank} heard another report of member {about} than we did")
        self.suspects = (about, rank) if about != rank else (rank,)


def encode_revealed(rank: int, reports: Sequence[bytes], answers: Mapping[int, Answers]) -> bytes:
    """Encode the answers that a member reveals, under the hashes of all reports that it heard.

    What is revealed follows from the reports. Without the hashes, a member that sends its peers
    different reports would make an honest one look as if it withheld answers.
    """
    return b"".join(map(sha256, reports)) + encode_answers(rank, answers)


def decode_revealed(
    data: bytes, rank: int, reports: Sequence[bytes], places: Sequence[int]
) -> dict[int, Answers]:
    """Read what a member reveals on these places; all members must have heard these reports."""
    size = HASH_BYTES * len(reports)
    for about, body in enumerate(reports):
        if data[HASH_BYTES * about : HASH_BYTES * (about + 1)] != sha256(body):
            raise HeardOtherwise(rank, about)
    return decode_answers(data[size:], rank, places)


def answers_on(report: bytes, revealed: bytes, rank: int, leaves: bytes) -> Answers | None:
    """Return what a member revealed on the delivery with this digest of leaf hashes, if anything.

    For a reader that does not know the claims: the member's own report has the place.
    """
    rows = Report.decode(report, rank, *stated_subject(report)).rows
    sheet = revealed[HASH_BYTES * COMPONENTS :]
    count = max(0, len(sheet) - _REPORT.size) // _SHEET_ROW.size
    found = decode_sheet(sheet, rank, count)
    places = (place for place, row in enumerate(rows) if row.leaves == leaves)
    return next((found[place] for place in places if place in found), None)


def answers_bytes(count: int) -> int:
    """Return the size of a member's answers on so many contributions."""
    return _REPORT.size + count * _SHEET_ROW.size


@dataclass(frozen=True)
class Standing:
    """What three reports say together about one contribution."""

    charged: FaultReason | None
    is_sound: bool
    """All found the same delivery, and no fault in it."""


def standing(rows: Sequence[ReportRow]) -> Standing:
    """Return what the reports of all members say about one contribution.

    A fault that two members report is charged, the lowest if they differ. One that a single member
    reports, or leaf hashes that differ, leave the contribution out, and charge nobody.
    """
    faults = [row.fault for row in rows if row.fault is not None]
    if len(faults) > MOST_FAULTS_OF_ONE:
        return Standing(min(faults), False)
    return Standing(None, not faults and len({row.leaves for row in rows}) == 1)


def alone(rows: Sequence[ReportRow]) -> tuple[int, ...]:
    """Return the ranks of members whose finding on one contribution nobody shares.

    Such a member lies, or the client has given it other words than its peers. If two report a fault
    the client is charged, and nobody is suspected.
    """
    if standing(rows).charged is not None:
        return ()
    found = [(row.fault, row.leaves) for row in rows]
    return tuple(rank for rank, each in enumerate(found) if found.count(each) == 1)


@dataclass(frozen=True)
class Conclusion:
    """The end of one audit: a verdict, or the members of whom one lies."""

    accepted: bool | None
    """None if the audit is aborted."""
    suspects: tuple[int, ...] = ()
    """One rank if it is shown to lie, two if one of them does."""
    component: int | None = None
    """The component on which two suspects differ."""


def conclude(commitments: Sequence[bytes], answers: Sequence[Answers]) -> Conclusion:
    """Compare the answers of all members, by rank, and return the verdict."""
    for each in answers:
        if each.commitment != bytes32("commitment", commitments[each.rank]):
            return Conclusion(None, (each.rank,))
    found: dict[int, tuple[int, Answer]] = {}
    for each in answers:
        for index, own in each.by_component().items():
            if index not in found:
                found[index] = each.rank, own
                continue
            other, known = found[index]
            if known != own:
                return Conclusion(None, (other, each.rank), index)
    return Conclusion(accepts([found[index][1] for index in range(COMPONENTS)]))


def audited_places(claims: Sequence[Claim], reports: Sequence[Report]) -> list[int]:
    """Return the places of contributions that are audited, and that all members found sound."""
    return [
        place
        for place, claim in enumerate(claims)
        if claim.audited and standing([report.rows[place] for report in reports]).is_sound
    ]


def verdict_of(
    claims: Sequence[Claim],
    reports: Sequence[Report],
    sheets: Sequence[Mapping[int, Answers]],
) -> tuple[Verdict, dict[int, Conclusion]]:
    """Return the verdict on a round, and how the audit at each place ended.

    A contribution on which members disagree is left out, and charged with nothing.
    """
    passed: set[ClientIndex] = set()
    faults: dict[ClientIndex, FaultReason] = {}
    ends: dict[int, Conclusion] = {}
    for place, claim in enumerate(claims):
        rows = [report.rows[place] for report in reports]
        found = standing(rows)
        if found.charged is not None:
            faults[claim.client] = found.charged
        elif found.is_sound and claim.audited:
            ends[place] = conclude(
                [row.commitment for row in rows], [sheet[place] for sheet in sheets]
            )
            if ends[place].accepted:
                passed.add(claim.client)
            elif ends[place].accepted is False:
                faults[claim.client] = FaultReason.REPLAY_OUTSIDE
        elif found.is_sound:
            passed.add(claim.client)
    return Verdict.of(passed, faults), ends


def settle(
    query: Query,
    part: ProofComponent,
    gradient: UnsignedWords,
    training_input: UnsignedWords,
    answers: Mapping[int, Answer],
) -> tuple[int, ...]:
    """Name the holders of one component, by rank, whose answers are wrong.

    For a third party that has this one component, which tells nothing about the words. Its leaf
    hashes must have been verified: then everyone computes the same answer.
    """
    right = query.answer(part, gradient, training_input)
    return tuple(sorted(rank for rank, given in answers.items() if given != right))
