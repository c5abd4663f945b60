"""One audit with a tampering member, by the functions that daemons use, and a standby.

What honest members send does not depend on what the tampering one sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opfl_chain.bench.tampering.attacks import TamperedMessages
from opfl_chain.bench.tampering.contributions import CLIENT, SUBJECT, Proved
from opfl_chain.mpc.session.ranks import MEMBERS, peers_of
from opfl_chain.protocol.audit_exchange import (
    Report,
    Reveal,
    bound_by,
    conclude,
    shirking_seats,
)
from opfl_chain.protocol.echo import Bound, Common, Echo, Signed, common, readable
from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.verdict import Outcome


@dataclass(frozen=True)
class End:
    """The end of an audit at one honest member."""

    accepted: bool | None
    """The verdict; None if the audit is undecided although a standby was asked."""
    named: tuple[int, ...] = ()
    """Members that pay: for a lie, for absence, or for saying two things."""
    is_settled: bool = False
    """True if a standby was asked."""


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

    @property
    def is_settled(self) -> bool:
        return any(end.is_settled for end in self.ends.values())


def audit(
    proved: Proved, attacker: int, attack: TamperedMessages, away: int | None = None
) -> Played:
    """Play an audit in which one member tampers, and another one may be away."""
    honest = [peer for peer in peers_of(attacker) if peer != away]
    reports = {rank: proved.report(rank).encode() for rank in honest}
    sheets = {rank: Reveal(rank, {CLIENT: proved.answers[rank]}).encode() for rank in honest}
    reported = _heard(attacker, reports, {to: attack.said[to].report for to in honest})
    told = {to: attack.said[to].answers for to in honest}
    # All honest members have the same reports, so that one's bind for all.
    revealed = _heard(attacker, sheets, told, bound_by(_reports(reported[honest[0]])))
    ends = {rank: _end(proved, reported[rank], revealed[rank]) for rank in honest}
    return Played(ends, frozenset(sheets.items()))


def _heard(
    attacker: int,
    honest: Mapping[int, bytes],
    told: Mapping[int, bytes | None],
    bound: Bound | None = None,
) -> dict[int, Common]:
    """Return what each honest member holds all have said, after the echo."""
    heard = {
        rank: {**honest, **({attacker: body} if (body := told[rank]) is not None else {})}
        for rank in honest
    }
    echoes = {rank: Echo.of(bodies) for rank, bodies in heard.items()}
    echoes[attacker] = Echo.of(honest)
    bodies = {
        (author, signed.hash): signed
        for each in heard.values()
        for author, body in each.items()
        for signed in [Signed(body, b"")]
    }
    return {rank: common(rank, honest[rank], echoes, bodies, bound) for rank in honest}


def _reports(reported: Common) -> dict[int, Report]:
    return readable(
        reported.values, lambda seat, body: Report.decode(body, seat, SUBJECT, [CLIENT])
    )


def _end(proved: Proved, reported: Common, revealed: Common) -> End:
    reports = _reports(reported)
    reveals = readable(revealed.values, lambda seat, body: Reveal.decode(body, seat, [CLIENT]))
    rows = {seat: each.rows[CLIENT] for seat, each in reports.items() if CLIENT in each.rows}
    words = {seat: each.answers[CLIENT] for seat, each in reveals.items() if CLIENT in each.answers}
    found = conclude(rows, words)
    asked = found.for_referee
    if asked:
        found = conclude(rows, words, referee=proved.referee(asked))
    two = {*reported.equivocators, *revealed.equivocators}
    named = two | set(found.liars) | shirking_seats(reports, reveals, range(MEMBERS))
    accepted = None if found.outcome is None else found.outcome is Outcome.PASSED
    return End(accepted, tuple(sorted(named)), bool(asked))


def uncompared(proved: Proved, attacker: int, attack: TamperedMessages) -> bool | None:
    """Return the verdict if each component were answered by one holder only, and not compared.

    So it would be if the other holder of the attacker's component were away, and its word counted.
    """
    said = {attacker: attack.said[peers_of(attacker)[0]].answers}
    found = readable(said, lambda seat, body: Reveal.decode(body, seat, [CLIENT]))
    if attacker not in found or CLIENT not in found[attacker].answers:
        return None
    own = found[attacker].answers[CLIENT].own
    return accepts([own if each == attacker else proved.answers[each].own for each in range(3)])
