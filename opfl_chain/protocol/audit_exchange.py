"""The exchange among members on the proved steps of audited clients, as pure functions.

Each member first reports on every answer, with a commitment to its own words about it, so that
nobody can copy another's. Then it reveals the words. Every component has two holders: where their
words differ one of them lies, and a standby that recomputes this one component says who. Nothing
is decided unless every component was confirmed by two: a word that nobody confirms may be forged,
by a member to which the client told all others, so that a wrong gradient passes.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.echo import Bound
from opfl_chain.protocol.errors import MessageError, ProtocolError
from opfl_chain.protocol.hashing import TAG_PROOF_ANSWERS, TAG_PROOF_CONTEXT, sha256
from opfl_chain.protocol.holders import weigh
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.proof.folding import ANSWER_WORDS, Answer
from opfl_chain.protocol.sealing import COMPLAINT_BYTES, Complaint
from opfl_chain.protocol.shares import HASH_BYTES, held_indices
from opfl_chain.protocol.verdict import Outcome, Verdict
from opfl_chain.protocol.widths import bytes32, unsigned_bytes

ANSWER_BYTES: Final = 16 * ANSWER_WORDS

_HEADER: Final = struct.Struct(">4sBBI")
"""Magic, version, seat, number of rows."""
_REPORT_MAGIC: Final = b"OPFR"
_REVEAL_MAGIC: Final = b"OPFA"
_REFEREE_MAGIC: Final = b"OPFJ"
_VERSION: Final = 2
_ROW_HEAD: Final = struct.Struct(">IB")
"""Client, kind of row."""
_FOUND: Final = 1
_COMPLAINT: Final = 2
_ROW_BYTES: Final = {_FOUND: HASH_BYTES, _COMPLAINT: COMPLAINT_BYTES}
_REVEAL_ROW: Final = struct.Struct(f">I{2 * ANSWER_BYTES}s")
_REFEREE_ROW: Final = struct.Struct(f">IB{ANSWER_BYTES}s")


def proof_context(
    separator: bytes,
    round_id: int,
    opening: bytes,
    client_index: int,
    gradient_commitment: bytes,
    input_commitment: bytes,
) -> bytes:
    """Return the digest that names the one contribution that a proof is about."""
    return sha256(
        TAG_PROOF_CONTEXT,
        bytes32("domain separator", separator),
        unsigned_bytes("round identifier", round_id, 96),
        bytes32("opening", opening),
        unsigned_bytes("client", client_index, 32),
        bytes32("gradient commitment", gradient_commitment),
        bytes32("input commitment", input_commitment),
    )


@dataclass(frozen=True)
class Answers:
    """A member's words on one contribution, for its own component and the following one."""

    seat: int
    own: Answer
    following: Answer

    @classmethod
    def of(cls, seat: int, found: Mapping[int, Answer]) -> Answers:
        """Take the answers for the components that a member holds."""
        own, following = held_indices(seat)
        return cls(seat, found[own], found[following])

    def encode(self) -> bytes:
        """Return the canonical bytes of both answers."""
        return self.own.encode() + self.following.encode()

    @property
    def commitment(self) -> bytes:
        """The hash that the member reports before it reveals the answers."""
        return sha256(TAG_PROOF_ANSWERS, bytes([self.seat]), self.encode())

    def by_component(self) -> dict[int, Answer]:
        """Return the answers by component."""
        return dict(zip(held_indices(self.seat), (self.own, self.following), strict=True))


@dataclass(frozen=True)
class ReportRow:
    """A member's finding about one answer that opened."""

    commitment: bytes
    """The commitment to the member's words."""


Row = ReportRow | Complaint
"""A row of a report: what was found, or the complaint that the answer does not open."""


@dataclass(frozen=True)
class Report:
    """A member's findings about the answers of a session, by client."""

    seat: int
    subject: bytes
    """A digest of the facts that must be the same for all members."""
    rows: Mapping[ClientIndex, Row]

    def encode(self) -> bytes:
        """Return the wire format, in the order of clients."""
        header = _HEADER.pack(_REPORT_MAGIC, _VERSION, self.seat, len(self.rows))
        rows = (_encode_row(client, row) for client, row in sorted(self.rows.items()))
        return b"".join([header, bytes32("subject", self.subject), *rows])

    @classmethod
    def decode(
        cls,
        data: bytes,
        seat: int,
        subject: bytes | None = None,
        clients: Collection[ClientIndex] | None = None,
    ) -> Report:
        """Read the report of a member, and require its subject and clients if they are given."""
        count, body = _opened(data, _REPORT_MAGIC, seat)
        if len(body) < HASH_BYTES:
            raise MessageError("the report is truncated in its subject")
        stated, body = body[:HASH_BYTES], body[HASH_BYTES:]
        if subject is not None and stated != subject:
            raise MessageError(
                f"member {seat} reports on other answers, policy, boundary or weights than ours"
            )
        rows: dict[ClientIndex, Row] = {}
        for _ in range(count):
            client, row, body = _decode_row(body, seat)
            _check_client(client, rows, clients)
            rows[client] = row
        if body:
            raise MessageError(f"the report has {len(body):,} bytes after its end")
        return cls(seat, stated, rows)


def _encode_row(client: ClientIndex, row: Row) -> bytes:
    if isinstance(row, Complaint):
        return _ROW_HEAD.pack(client, _COMPLAINT) + row.encode()
    return _ROW_HEAD.pack(client, _FOUND) + bytes32("commitment", row.commitment)


def _decode_row(data: bytes, seat: int) -> tuple[ClientIndex, Row, bytes]:
    if len(data) < _ROW_HEAD.size:
        raise MessageError("the report is truncated in a row")
    client, kind = _ROW_HEAD.unpack_from(data)
    if kind not in _ROW_BYTES:
        raise MessageError(f"the report has a row of unknown kind {kind}")
    end = _ROW_HEAD.size + _ROW_BYTES[kind]
    if len(data) < end:
        raise MessageError("the report is truncated in a row")
    content, rest = data[_ROW_HEAD.size : end], data[end:]
    if kind == _FOUND:
        return client, ReportRow(content), rest
    complaint = Complaint.decode(content)
    if complaint.seat != seat:
        raise MessageError(f"member {seat} complains in the name of member {complaint.seat}")
    return client, complaint, rest


@dataclass(frozen=True)
class Reveal:
    """A member's words in a session, by client."""

    seat: int
    answers: Mapping[ClientIndex, Answers]

    def encode(self) -> bytes:
        """Return the wire format, in the order of clients."""
        header = _HEADER.pack(_REVEAL_MAGIC, _VERSION, self.seat, len(self.answers))
        rows = (
            _REVEAL_ROW.pack(client, each.encode()) for client, each in sorted(self.answers.items())
        )
        return b"".join([header, *rows])

    @classmethod
    def decode(
        cls, data: bytes, seat: int, clients: Collection[ClientIndex] | None = None
    ) -> Reveal:
        """Read a member's words, on these clients at most."""
        count, body = _opened(data, _REVEAL_MAGIC, seat)
        if len(body) != count * _REVEAL_ROW.size:
            raise MessageError(f"words on {count:,} contributions do not take {len(body):,} bytes")
        found: dict[ClientIndex, Answers] = {}
        for client, both in _REVEAL_ROW.iter_unpack(body):
            _check_client(client, found, clients)
            own, following = (
                Answer.decode(both[at : at + ANSWER_BYTES]) for at in (0, ANSWER_BYTES)
            )
            found[client] = Answers(seat, own, following)
        return cls(seat, found)


def fits(report: Report, body: bytes) -> bool:
    """Return whether these are the words that a report commits to, on every answer and no other.

    Words have one encoding, so that no second message fits.
    """
    try:
        answers = Reveal.decode(body, report.seat).answers
    except ProtocolError:
        return False
    committed = {c: row.commitment for c, row in report.rows.items() if isinstance(row, ReportRow)}
    return committed == {client: each.commitment for client, each in answers.items()}


def bound_by(reports: Mapping[int, Report]) -> Bound:
    """Return what the common reports bind their members to say next."""
    return {seat: partial(fits, report) for seat, report in reports.items()}


@dataclass(frozen=True)
class RefereeReveal:
    """A standby's words on components that are disputed or unconfirmed, by client."""

    number: int
    """The standby's number on the roster."""
    answers: Mapping[ClientIndex, Mapping[int, Answer]]

    def encode(self) -> bytes:
        """Return the wire format, in the order of clients and components."""
        rows = [
            _REFEREE_ROW.pack(client, component, answer.encode())
            for client, found in sorted(self.answers.items())
            for component, answer in sorted(found.items())
        ]
        return b"".join([_HEADER.pack(_REFEREE_MAGIC, _VERSION, self.number, len(rows)), *rows])

    @classmethod
    def decode(cls, data: bytes, number: int) -> RefereeReveal:
        """Read the words of the standby with this number on the roster."""
        count, body = _opened(data, _REFEREE_MAGIC, number)
        if len(body) != count * _REFEREE_ROW.size:
            raise MessageError(f"words on {count:,} components do not take {len(body):,} bytes")
        found: dict[ClientIndex, dict[int, Answer]] = {}
        places: list[tuple[int, int]] = []
        for client, component, answer in _REFEREE_ROW.iter_unpack(body):
            if component >= COMPONENTS:
                raise MessageError(f"component {component} does not exist, use 0, 1 or 2")
            places.append((client, component))
            found.setdefault(client, {})[component] = Answer.decode(answer)
        if any(before >= after for before, after in pairwise(places)):
            raise MessageError("clients and components must increase")
        return cls(number, found)


def _opened(data: bytes, magic: bytes, author: int) -> tuple[int, bytes]:
    """Return the number of rows that a message states, and what follows its header."""
    if len(data) < _HEADER.size:
        raise MessageError(f"the message has {len(data)} bytes, at least {_HEADER.size} expected")
    found, version, stated, count = _HEADER.unpack_from(data)
    if (found, version, stated) != (magic, _VERSION, author):
        raise MessageError(
            f"the message starts with {found!r}, version {version} and number {stated}, expected"
            f" {magic!r}, {_VERSION} and {author}"
        )
    return count, bytes(data[_HEADER.size :])


def _check_client(
    client: ClientIndex,
    before: dict[ClientIndex, Row] | dict[ClientIndex, Answers],
    clients: Collection[ClientIndex] | None,
) -> None:
    last = next(reversed(before), -1)
    if client <= last:
        raise MessageError(f"clients must increase: {client} follows {last}")
    if clients is not None and client not in clients:
        raise MessageError(f"client {client} is not a subject of this session")


@dataclass(frozen=True)
class Dispute:
    """Members of whom one lies, on one component."""

    component: int
    seats: tuple[int, ...]
    """Both holders; one of them if a referee contradicts the only holder that answered."""


@dataclass(frozen=True)
class Conclusion:
    """The end of one audit, as far as it has come."""

    outcome: Outcome | None
    """The outcome; None until a referee settles it: the client neither passes nor is charged."""
    disputes: tuple[Dispute, ...] = ()
    unconfirmed: tuple[int, ...] = ()
    """The components that fewer than two have answered for."""
    liars: tuple[int, ...] = ()
    """The seats that are shown to lie."""

    @property
    def for_referee(self) -> tuple[int, ...]:
        """The components that a standby must answer for before the audit is decided."""
        if self.outcome is not None:
            return ()
        disputed = (dispute.component for dispute in self.disputes)
        return tuple(sorted({*disputed, *self.unconfirmed}))


def conclude(
    rows: Mapping[int, Row],
    answers: Mapping[int, Answers],
    standing: Collection[int] = (),
    referee: Mapping[int, Answer] | None = None,
) -> Conclusion:
    """Return how the audit of one contribution ends, from what all members know.

    ``rows`` and ``answers`` are those of the common reports and reveals, by seat. ``standing`` are
    the seats whose complaint was found to stand: then there is no valid answer. Whoever complains
    of an answer that opens, or breaks its commitment, lies. Of the rest, words of a component's
    holders that differ are a dispute. Once every component was confirmed by two, two holders or a
    holder and the ``referee``, the client has passed if the words of all accept, or is outside.
    """
    if standing:
        return Conclusion(Outcome.UNANSWERED)
    liars: set[int] = set()
    words: dict[int, dict[int, Answer]] = {index: {} for index in range(COMPONENTS)}
    for seat, row in sorted(rows.items()):
        if isinstance(row, Complaint):
            liars.add(seat)
        elif seat in answers:
            each = answers[seat]
            if each.commitment != row.commitment:
                liars.add(seat)
                continue
            for index, answer in each.by_component().items():
                words[index][seat] = answer
    found = _decide(words, liars, {})
    if found.outcome is not None or not referee:
        return found  # a referee has no word where nobody asked for one
    return _decide(words, liars, referee)


def _decide(
    words: Mapping[int, Mapping[int, Answer]], liars: set[int], referee: Mapping[int, Answer]
) -> Conclusion:
    settled: list[Answer] = []
    disputes: list[Dispute] = []
    unconfirmed: list[int] = []
    for index, said in words.items():
        found = weigh(said, referee.get(index))
        liars.update(found.liars)
        if found.disputed:
            disputes.append(Dispute(index, found.disputed))
        elif not found.is_confirmed:
            unconfirmed.append(index)
        elif found.word is not None:
            settled.append(found.word)
    outcome = None
    if len(settled) == COMPONENTS:
        outcome = Outcome.PASSED if accepts(settled) else Outcome.OUTSIDE
    return Conclusion(outcome, tuple(disputes), tuple(unconfirmed), tuple(sorted(liars)))


def shirking_seats(
    reports: Mapping[int, Report], reveals: Mapping[int, Reveal], sealed_to: Collection[int]
) -> set[int]:
    """Return the seats that said less in a session than they could.

    They reported or revealed nothing, revealed no words that they had committed to, or said nothing
    about an answer that both others have opened: two seats hold all components of it, and whoever
    it is sealed to, ``sealed_to``, can open it as well.
    """
    found = {seat for seat in range(COMPONENTS) if seat not in reports or seat not in reveals}
    for seat, report in reports.items():
        opened = {client for client, row in report.rows.items() if isinstance(row, ReportRow)}
        if seat in reveals and not opened <= set(reveals[seat].answers):
            found.add(seat)
        others = [reports[each].rows for each in reports if each != seat]
        if seat not in sealed_to or len(others) < COMPONENTS - 1:
            continue
        for client in set(others[0]) & set(others[1]) - set(report.rows):
            if all(isinstance(rows[client], ReportRow) for rows in others):
                found.add(seat)
    return found


def verdict_of(
    clients: Iterable[ClientIndex],
    audited: Collection[ClientIndex],
    conclusions: Mapping[ClientIndex, Conclusion],
) -> Verdict:
    """Return the verdict on the clients of a roll.

    Who is not audited passes; who is passes only if its audit has ended so.
    """
    passed = {
        client for client, conclusion in conclusions.items() if conclusion.outcome is Outcome.PASSED
    }
    return Verdict.of(client for client in clients if client not in audited or client in passed)
