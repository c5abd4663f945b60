"""One audit with a tampering member, by the functions that daemons use, and a third party.

What honest members send does not depend on what the tampering one sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opfl_chain.bench.tampering.attacks import HEADER_BYTES, HEARD_BYTES, Attack, Said
from opfl_chain.bench.tampering.contributions import SUBJECT, Proved
from opfl_chain.mpc.session.ranks import MEMBERS, peers_of
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.exchange import (
    HeardOtherwise,
    Report,
    ReportRow,
    conclude,
    decode_revealed,
    encode_revealed,
    settle,
    standing,
)
from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.proof.folding import Answer


@dataclass(frozen=True)
class End:
    """The end of an audit at one honest member: a verdict, or those that are named."""

    accepted: bool | None
    named: tuple[int, ...] = ()


@dataclass(frozen=True)
class Played:
    """An audit with a tampering member: how it ended at each honest one, and what these said."""

    ends: Mapping[int, End]
    opened: frozenset[tuple[int, bytes]]
    """The answers that honest members revealed, by their rank."""

    @property
    def named(self) -> set[int]:
        return {rank for end in self.ends.values() for rank in end.named}

    @property
    def is_aborted(self) -> bool:
        return any(end.accepted is None for end in self.ends.values())


def audit(proved: Proved, attacker: int, attack: Attack) -> Played:
    """Play an audit in which one member tampers."""
    honest = peers_of(attacker)
    reports = {rank: proved.report(rank).encode() for rank in honest}
    heard: dict[int, list[bytes] | None] = {}
    for rank in honest:
        report = attack.said[rank].report
        told = {**reports, attacker: report}
        complete = None if report is None else [told[each] or b"" for each in range(MEMBERS)]
        heard[rank] = complete
    revealed = {rank: _reveal(proved, rank, heard[rank]) for rank in honest}
    ends = {
        rank: _end(proved, attacker, rank, heard, revealed, attack.said[rank]) for rank in honest
    }
    sheets = ((rank, data[HEARD_BYTES:]) for rank, data in revealed.items() if data)
    return Played(ends, frozenset(each for each in sheets if len(each[1]) > HEADER_BYTES))


def _sound(reports: Sequence[bytes]) -> list[Report] | int:
    """Decode reports, or return the rank whose report is none."""
    found = []
    for rank, body in enumerate(reports):
        try:
            found.append(Report.decode(body, rank, SUBJECT, 1))
        except ProtocolError:
            return rank
    return found


def _reveal(proved: Proved, rank: int, heard: list[bytes] | None) -> bytes | None:
    """Return what an honest member reveals: nothing until it has three reports."""
    reports = None if heard is None else _sound(heard)
    if heard is None or reports is None or isinstance(reports, int):
        return None
    is_sound = standing([report.rows[0] for report in reports]).is_sound
    return encode_revealed(rank, heard, {0: proved.answers[rank]} if is_sound else {})


def _end(
    proved: Proved,
    attacker: int,
    rank: int,
    heard: Mapping[int, list[bytes] | None],
    revealed: Mapping[int, bytes | None],
    said: Said,
) -> End:
    own = heard[rank]
    if own is None:
        return End(None, (attacker,))  # the one that is silent
    reports = _sound(own)
    if isinstance(reports, int):
        return End(None, (reports,))
    rows = [report.rows[0] for report in reports]
    if not (found := standing(rows)).is_sound:
        if found.charged is not None:
            return End(False)
        return End(None, _false_findings(proved, rows))
    sheets = []
    for each in range(MEMBERS):
        data = said.answers(own) if each == attacker else revealed[each]
        if data is None:
            # A peer that reveals nothing shows the signed report that it could not read.
            return End(None, (attacker,))
        try:
            sheets.append(decode_revealed(data, each, own, [0])[0])
        except HeardOtherwise as error:
            return End(None, _settle_heard(error, heard))
        except (ProtocolError, ValueError):
            return End(None, (each,))
    end = conclude([row.commitment for row in rows], sheets)
    if end.component is None:
        return End(end.accepted, end.suspects)
    given = {each: sheets[each].by_component()[end.component] for each in end.suspects}
    return End(None, _settle(proved, end.component, given))


def _settle(proved: Proved, index: int, given: Mapping[int, Answer]) -> tuple[int, ...]:
    """A third party recomputes one component."""
    part = proved.component(index)
    words = proved.gradient.components[index], proved.training_input.components[index]
    return settle(proved.query, part, *words, given)


def _false_findings(proved: Proved, rows: Sequence[ReportRow]) -> tuple[int, ...]:
    """A third party repeats the check of the delivery that a member complains about."""
    false = []
    for rank, row in enumerate(rows):
        package, form = proved.packages[rank], proved.query.form
        package.verify(form)
        if (row.fault, row.leaves) != (None, package.leaves.digest):
            false.append(rank)
    return tuple(false)


def _settle_heard(
    error: HeardOtherwise, heard: Mapping[int, list[bytes] | None]
) -> tuple[int, ...]:
    """A third party has both show the signed report: an honest member shows what it was sent."""
    about = error.suspects[0]
    signed = {reports[about] for reports in heard.values() if reports is not None}
    return (about,) if len(signed) > 1 else error.suspects[-1:]


def uncompared(proved: Proved, attacker: int, attack: Attack) -> bool | None:
    """Return the verdict if each component were answered by one holder only, and not compared."""
    rank = peers_of(attacker)[0]
    said = attack.said[rank]
    heard = [proved.report(each).encode() for each in range(MEMBERS)]
    data = said.answers(heard)
    try:
        own = decode_revealed(data or b"", attacker, heard, [0])[0].own
    except (ProtocolError, ValueError):
        return None
    return accepts([own if each == attacker else proved.answers[each].own for each in range(3)])
