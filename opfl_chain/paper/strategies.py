"""Choices that a cheat has left after the seed, and the charges for each.

A contribution outside the boundary is audited. Its client answers to some seats or to none, asks
for its deposit or not, and the member in seat 0 may help it. How the audit ends is computed by the
functions with which members conclude audits, from words like theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Final

from opfl_chain.chain.bindings.types import Phases
from opfl_chain.chain.terms import DEPOSIT, default_penalties, shortest_unbonding
from opfl_chain.jobs.localnet.plan import PHASES
from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.audit_exchange import Answers, Conclusion, ReportRow, conclude
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.roll import Listed, candidates
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.verdict import Outcome

SEATS: Final = range(3)
ALL: Final = frozenset(SEATS)
COLLUDING: Final = 0
"""The seat of the member that helps a cheat."""

_CLIENT: Final = ClientIndex(0)
_ANSWER: Final = bytes(32)
_WORDS: Final = (1, 2, -2)
"""Words of the three components. They do not add up to zero: the step is outside the boundary."""


@dataclass(frozen=True)
class Act:
    """A way to behave once one is audited."""

    answers_to: frozenset[int] = ALL
    """Seats that the client sends its answer to."""
    leaves: bool = False
    """True if it asks for its deposit right after its contribution."""
    member: str = "honest"
    """The member in seat 0 is `honest`, or for the client `silent`, or `lies`."""


@dataclass(frozen=True)
class AuditRules:
    """Rules by which audits end and cost."""

    ends: Callable[[Act], Outcome | None]
    """The end of the audit of a contribution outside; None if it is never decided."""
    prices: Mapping[Outcome, float]
    """The part of the deposit that an end costs."""
    unbonding: int
    """Blocks between asking for a deposit and getting it."""
    audit: int
    """Blocks between contributing and the last one in which the audit can take the deposit."""

    def price(self, act: Act) -> float:
        """Return the part of the deposit that an audit costs whoever acts so."""
        if act.leaves and self.unbonding < self.audit:
            return 0.0
        end = self.ends(act)
        return self.prices.get(end, 0.0) if end is not None else 0.0


def ends_in_version_2(
    act: Act, conclude: Callable[..., Conclusion] = conclude, has_standby: bool = True
) -> Outcome | None:
    """End an audit as members do: lists of answers, reports, words, and a referee."""
    honest = ALL - {COLLUDING} if act.member != "honest" else ALL
    reached = bool(act.answers_to & honest)  # an answer to one honest member reaches all
    lists = [Listed({_CLIENT: _ANSWER})] * (len(honest) * reached)
    if COLLUDING not in honest and COLLUDING in act.answers_to and act.member != "silent":
        lists.append(Listed({_CLIENT: _ANSWER}))
    if _CLIENT not in candidates(lists):
        return Outcome.UNANSWERED
    words = {seat: _words(seat) for seat in honest}
    if act.member == "lies":
        words[COLLUDING] = _words(COLLUDING, turned=1)
    rows = {seat: ReportRow(each.commitment) for seat, each in words.items()}
    found = conclude(rows, words)
    if found.for_referee and has_standby:
        referee = {component: _word(component) for component in found.for_referee}
        found = conclude(rows, words, referee=referee)
    return found.outcome


def ends_in_version_1(act: Act) -> Outcome | None:
    """End an audit as version 1 did: whatever members did not agree on was never decided."""
    if act.answers_to and act.answers_to != ALL:
        return None
    if act.member != "honest":
        return None
    return Outcome.OUTSIDE if act.answers_to else Outcome.UNANSWERED


def _words(seat: int, turned: int = 0) -> Answers:
    """Return the words that a member computes; ``turned`` makes all words together accept."""
    own, following = held_indices(seat)
    return Answers(seat, _word(own, -turned), _word(following))


def _word(component: int, added: int = 0) -> Answer:
    return Answer(0, 0, 0, (_WORDS[component] + added) % MODULUS)


def _audit_blocks(phases: Phases) -> int:
    """Return the blocks from the end of the deliveries to the end of the response window."""
    return phases.roll + phases.beacon + phases.answer + phases.attest + phases.response


_FAILED: Final = default_penalties().client / DEPOSIT
"""There is one penalty, whether an audited contribution is outside or not answered for."""

VERSION_2: Final = AuditRules(
    ends_in_version_2,
    {Outcome.OUTSIDE: _FAILED, Outcome.UNANSWERED: _FAILED},
    shortest_unbonding(PHASES),
    _audit_blocks(PHASES),
)
VERSION_1: Final = AuditRules(
    ends_in_version_1,
    {Outcome.OUTSIDE: 1.0, Outcome.UNANSWERED: 0.1},
    shortest_unbonding(PHASES),
    _audit_blocks(PHASES),
)


@dataclass(frozen=True)
class Strategy:
    """A client's way through a job: when it cheats, and what it may do when it is audited."""

    name: str
    cheats_in: range
    """The rounds in which it saves the computation."""
    acts: tuple[Act, ...] = (Act(),)
    """The options after a cheat, of which it takes the cheapest."""

    def price(self, rules: AuditRules) -> float:
        """Return the part of the deposit that an audit of a cheat costs."""
        return min(rules.price(act) for act in self.acts)


def strategies(rounds: int) -> tuple[Strategy, ...]:
    """Return the strategies of a job of so many rounds."""
    always, last = range(rounds), range(rounds - rounds // 10, rounds)
    some = chain.from_iterable(combinations(SEATS, count) for count in (1, 2))
    evading = tuple(Act(frozenset(seats)) for seats in some)
    colluding = tuple(
        Act(frozenset(seats), member=member)
        for seats, member in product(
            chain.from_iterable(combinations(SEATS, count) for count in range(4)),
            ("silent", "lies"),
        )
    )
    return (
        Strategy("honest", range(0)),
        Strategy("cheat always", always),
        Strategy("cheat rarely", range(0, rounds, 10)),
        Strategy("withhold the answer", always, (Act(frozenset()),)),
        Strategy("evade", always, evading),
        Strategy("collude with a member", always, colluding),
        Strategy("cheat at the end and leave", last, (Act(leaves=True),)),
    )
