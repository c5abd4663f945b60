"""The rules with one defence off: what each of them is there for.

A variant is named for the attack that it lets through, with the property that then breaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import unconfirmed
from model_world import FULL, MEETING, PROVED, Rules

from opfl_chain.protocol import echo, sums
from opfl_chain.protocol.audit_exchange import Answers, Conclusion, ReportRow, Row, conclude
from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.echo import Bound, Common, Echo, Signed
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.meeting import Results
from opfl_chain.protocol.referee import SEATS_NEEDED, HandOver, Wanted
from opfl_chain.protocol.roll import Listed
from opfl_chain.protocol.verdict import Outcome


@dataclass(frozen=True)
class Variant:
    """Rules that let an attack through."""

    rules: Rules
    breaks: str
    kind: str = PROVED
    bench: tuple[int, ...] = (3,)
    rounds: int = 1


def heard_directly(
    own_seat: int,
    own_body: bytes | None,
    echoes: Mapping[int, Echo],
    bodies: Mapping[tuple[int, bytes], Signed],
    bound: Bound | None = None,
) -> Common:
    """Count what each member heard itself, without the echoes of others."""
    return echo.common(own_seat, own_body, {own_seat: echoes[own_seat]}, bodies, bound)


def author_counts(
    own_seat: int,
    own_body: bytes | None,
    echoes: Mapping[int, Echo],
    bodies: Mapping[tuple[int, bytes], Signed],
    bound: Bound | None = None,
) -> Common:
    """Count also what an author says in its own echo."""
    found = echo.common(own_seat, own_body, echoes, bodies, bound)
    for author, each in echoes.items():
        named = each.of_author(author)
        if author != own_seat and named is not None and found.values[author] is None:
            found.values[author] = bodies[author, named].body
    return found


def two_count_as_nothing(
    own_seat: int,
    own_body: bytes | None,
    echoes: Mapping[int, Echo],
    bodies: Mapping[tuple[int, bytes], Signed],
    bound: Bound | None = None,
) -> Common:
    """Count no words of who said two things, also if one of them fits."""
    del bound
    return echo.common(own_seat, own_body, echoes, bodies)


def whatever_fits_counts(
    own_seat: int,
    own_body: bytes | None,
    echoes: Mapping[int, Echo],
    bodies: Mapping[tuple[int, bytes], Signed],
    bound: Bound | None = None,
) -> Common:
    """Count words that fit also if nobody echoed them."""
    found = echo.common(own_seat, own_body, echoes, bodies, bound)
    for (author, _), each in bodies.items():
        if (
            bound is not None
            and author != own_seat
            and author in bound
            and bound[author](each.body)
        ):
            found.values[author] = each.body
    return found


def whatever_words(body: bytes, committed: bytes | None) -> bool:
    """Take whatever words come first for those that were committed to."""
    del body, committed
    return True


def named_by(quorum: int, lists: Iterable[Listed]) -> dict[ClientIndex, bytes]:
    """Take bundles that so many lists name."""
    named = Counter(pair for each in lists for pair in each.hashes.items())
    found: dict[ClientIndex, bytes] = {}
    for client, content in sorted(named):
        if named[client, content] >= quorum:
            found.setdefault(client, content)
    return found


def named_by_one(lists: Iterable[Listed]) -> dict[ClientIndex, bytes]:
    return named_by(1, lists)


def named_by_all(lists: Iterable[Listed]) -> dict[ClientIndex, bytes]:
    return named_by(3, lists)


def on_one_word(*said: Any, **more: Any) -> Conclusion:
    """Convict whoever one holder's words convict, where two holders differ."""
    found = conclude(*said, **more)
    return replace(found, outcome=Outcome.OUTSIDE) if found.disputes else found


def without_confirmation(*said: Any, **more: Any) -> Conclusion:
    """Pass whoever is undecided."""
    found = conclude(*said, **more)
    return replace(found, outcome=found.outcome or Outcome.PASSED)


def unconfirmed_words_pass(*said: Any, **more: Any) -> Conclusion:
    """Pass whom all words accept, where one holder alone says one of them."""
    found = unconfirmed.conclude(*said, **more)
    return found if found.outcome is not Outcome.OUTSIDE else conclude(*said, **more)


def first_holder(parts: Mapping[int, sums.Stated], judged: Any = None) -> sums.AgreedSum:
    """Take the first holder's word on a component that is disputed."""
    found = sums.agree(parts, judged)
    for index, holders in found.disputes.items():
        seat = holders[0]
        found.hashes[index] = parts[seat][0 if seat == index else 1]
    return replace(found, disputes={})


def in_common(handed: Iterable[HandOver]) -> list[Wanted]:
    """Recompute whatever two seats have in common of what they want."""
    named = Counter(wanted for each in handed for wanted in each.keys)
    found = [wanted for wanted, count in named.items() if count >= 2]
    return sorted(found, key=lambda each: (each.client, each.component))


def first_results(values: Mapping[int, bytes | None]) -> frozenset[ClientIndex] | None:
    """Take the results of a meeting that one member states."""
    said = [Results.decode(each) for each in values.values() if each not in (None, b"another")]
    return next((each.passed for each in said if each is not None), None)


def every_component(conclusion: Conclusion) -> Iterable[int]:
    """Want a referee to recompute an audit as a whole if anything of it is open."""
    return range(COMPONENTS) if conclusion.for_referee else ()


def without_limit(handed: Iterable[HandOver]) -> list[Wanted]:
    """Recompute what two seats want, also all components of a contribution."""
    named = Counter(frozenset(each.keys) for each in handed)
    found = next((each for each, count in named.items() if count >= SEATS_NEEDED), frozenset())
    return sorted(found, key=lambda each: (each.client, each.component))


def uncommitted(rows: Mapping[int, Row], answers: Mapping[int, Answers], **more: Any) -> Conclusion:
    """Take whatever words are revealed: whoever has none repeats those of the others."""
    own = {seat: each.commitment for seat, each in answers.items()}
    rebound = {
        seat: replace(row, commitment=own[seat])
        if isinstance(row, ReportRow) and seat in own
        else row
        for seat, row in rows.items()
    }
    return conclude(rebound, answers, **more)


def seat_is_kept(*given: Any) -> None:
    return None


VARIANTS: Final = {
    "echo off": Variant(Rules(common=heard_directly), "AGREE"),
    "echo of the author counts": Variant(Rules(common=author_counts), "AGREE"),
    "late messages count": Variant(Rules(late_counts=True), "AGREE"),
    "other words end a step": Variant(Rules(fits=whatever_words), "AGREE"),
    "two words count as nothing": Variant(Rules(common=two_count_as_nothing), "AGREE"),
    "late words count": Variant(Rules(common=whatever_fits_counts), "AGREE"),
    "who ended without an echo serves none": Variant(Rules(serves_echo=False), "AGREE"),
    "one list is enough": Variant(Rules(candidates=named_by_one), "HOLD"),
    "all lists are needed": Variant(Rules(candidates=named_by_all), "FEW"),
    "complaint without proof": Variant(Rules(complaint_proof=False), "FEW"),
    "complaint charges": Variant(Rules(complaint_proof=False, complaint_costs=FULL), "G1"),
    "complaints do not exclude": Variant(Rules(exclude=lambda named, _: dict(named)), "HOLD"),
    "high s": Variant(Rules(canonical=False), "G2"),
    "opening not bound": Variant(Rules(bound=False), "G1"),
    "no proof of knowledge": Variant(Rules(knowledge=False), "G4"),
    "roll by the server": Variant(Rules(roll_by_members=False), "FEW"),
    "verdict without waiting": Variant(Rules(waits=False), "G2"),
    "the undecided pass": Variant(Rules(conclude=without_confirmation), "G2"),
    "conviction on one word": Variant(Rules(conclude=on_one_word), "FEW"),
    "conviction on one word costs": Variant(Rules(conclude=on_one_word), "G1"),
    "an unconfirmed word passes": Variant(Rules(conclude=unconfirmed_words_pass), "G2"),
    "no referee of audits": Variant(Rules(referee=False), "FEW"),
    "no referee of sums": Variant(Rules(referee=False), "G5"),
    "first holder of a sum": Variant(Rules(agree=first_holder), "SUM"),
    "an unconfirmed part of a sum counts": Variant(Rules(agree=unconfirmed.agree), "SUM"),
    "a referee is shown all": Variant(Rules(most_shown=COMPONENTS, wanted=without_limit), "G4"),
    "a part is recomputed": Variant(Rules(wanted=in_common), "G3"),
    "one signature": Variant(Rules(signatures=1), "G3"),
    "one signature charges": Variant(Rules(signatures=1), "G1"),
    "withheld answers cost less": Variant(Rules(unanswered_costs=FULL // 2), "G2"),
    "no response window": Variant(Rules(response_window=False), "G1"),
    "a second sum": Variant(Rules(one_sum=False), "G4"),
    "hearings taken up again": Variant(Rules(heard_once=False), "G3", bench=()),
    "seat of the liar kept": Variant(Rules(due_change=seat_is_kept), "G5", rounds=2),
    "suspects keep their seats": Variant(Rules(suspects=False), "G2", MEETING),
    "suspects end all meetings": Variant(Rules(suspects=False), "G5", MEETING),
    "withheld beacon is free": Variant(Rules(penalties=False), "G5"),
    "undecided clients contribute": Variant(Rules(suspends=False), "G2"),
    "a referee gets all components": Variant(
        Rules(asks=every_component, most_shown=COMPONENTS, wanted=without_limit), "G4"
    ),
    "words without commitment": Variant(Rules(conclude=uncommitted), "G5"),
    "any of several bundles is listed": Variant(Rules(smallest_counts=False), "FEW"),
    "one member's results": Variant(Rules(results=first_results), "AGREE", MEETING),
}
