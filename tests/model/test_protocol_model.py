"""Protocol 2, played in all ways and by dice: what must hold does, and every defence is needed."""

from __future__ import annotations

import os
from dataclasses import fields
from functools import partial

import pytest
from model_choices import Dice, Trace, changed, explore
from model_end import MOST_FAILURES, broken, phases_of_round, reopen, starts
from model_roll import CLEAN
from model_variants import VARIANTS, Variant, every_component
from model_world import MEETING, PROVED, Bundle, Rules, State, amount_paid

RUNS = int(os.environ.get("OPFL_MODEL_RUNS", "300"))
"""Random runs of each kind of audit; `make model` plays more."""
ROUNDS = 12
VARIANT_RUNS = 20_000
"""Dice find most attacks long before; the search that comes after them takes minutes."""
LATE_HEARINGS = {PROVED: 2, MEETING: 1 + MOST_FAILURES}
"""A replay that finds somebody outside is repeated, and that may fail as often as it can."""
PHASES_BEFORE_REPORTS = 6


def played(seed: int, start: State, rules: Rules, rounds: int) -> tuple[State, Trace]:
    """Play rounds by dice, until a property is broken."""
    dice, state = Dice(seed), start
    for _ in range(rounds):
        for phase in phases_of_round(rules, LATE_HEARINGS[start.kind]):
            state = phase(state, dice)
            if state.broken:
                return state, dice.trace
        state = reopen(state, dice)
    return state, dice.trace


def test_one_round_of_proved_audits_in_all_ways() -> None:
    attended = [changed(each, may_miss=False) for each in starts(PROVED)]
    found = explore(attended, phases_of_round(Rules(), late_hearings=1), broken)
    assert found.violations == {}
    assert found.transitions > 100_000
    ends = {outcome for state in found.last for _, outcome in state.ends}
    assert len(ends) == 3, "clients are acquitted, found outside, and do not answer"
    assert {len(state.seen) for state in found.last} == {0, 1, 2}, "a referee is asked"
    assert any(state.seats != (0, 1, 2) for state in found.last), "a seat changes"


def test_without_a_standby_nobody_honest_pays() -> None:
    alone = changed(starts(PROVED, bench=())[1], may_miss=False)
    found = explore([alone], phases_of_round(Rules(), late_hearings=1), broken)
    assert found.violations == {}


@pytest.mark.parametrize("crashes", [0, 1])
def test_meetings_in_all_ways(crashes: int) -> None:
    """A member ends meetings as it likes; an honest machine may fail in one of them as well."""
    most = MOST_FAILURES * (1 + crashes)
    phases = phases_of_round(Rules(), late_hearings=2 + most + crashes)[PHASES_BEFORE_REPORTS:]
    found = explore([answered(each, crashes) for each in starts(MEETING)], phases, broken)
    assert found.violations == {}
    assert max(state.failures for state in found.last) == most
    assert {len(state.history) for state in found.last} == set(range(most + crashes + 1))


def answered(world: State, crashes: int) -> State:
    """Both clients are audited and have answered; the rogue's contribution is outside."""
    roll = tuple(Bundle(client, CLEAN) for client in world.clients)
    audited, outside = frozenset(world.clients), frozenset(world.rogues)
    return changed(
        world, roll=roll, answers=roll, audited=audited, outside=outside, crashes=crashes
    )


@pytest.mark.parametrize("kind", [PROVED, MEETING])
def test_random_rounds(kind: str) -> None:
    worlds, paid = starts(kind, honest=2, rogues=2), 0
    for seed in range(RUNS):
        state, trace = played(seed, worlds[seed % len(worlds)], Rules(), ROUNDS)
        assert not state.broken, (seed, state.broken, trace)
        paid += amount_paid(state, f"member {state.byzantine}") > 0
    assert paid > RUNS // 4


def test_every_rule_is_taken_away_in_a_variant() -> None:
    built = Rules()
    taken = {
        rule.name
        for rule in fields(Rules)
        for each in VARIANTS.values()
        if getattr(each.rules, rule.name) != getattr(built, rule.name)
    }
    assert taken == {rule.name for rule in fields(Rules)}


@pytest.mark.parametrize("name", VARIANTS)
def test_without_this_defence_an_attack_is_found(name: str) -> None:
    variant = VARIANTS[name]
    ways = [found_by_dice, found_by_search]
    if variant.kind == MEETING:
        ways.reverse()  # dice seldom end one meeting after the other and do nothing else
    assert any(find(variant) for find in ways), f"{name}: no {variant.breaks} found"


def test_no_referee_sees_a_contribution_as_a_whole_also_if_seats_want_that() -> None:
    """The limit alone holds: without it the same wishes show all components, see the variants."""
    worlds, rules = starts(PROVED), Rules(asks=every_component)
    ends = [played(seed, worlds[seed % len(worlds)], rules, 1)[0] for seed in range(RUNS)]
    assert not any(each.startswith("G4") for state in ends for each in state.broken)


def found_by_search(variant: Variant) -> bool:
    if variant.rounds > 1:
        return False
    start = starts(variant.kind, bench=variant.bench)
    phases = phases_of_round(variant.rules, late_hearings=1)
    if variant.kind == MEETING:
        start = [answered(each, crashes=0) for each in start]
        phases = phases_of_round(variant.rules, 1 + MOST_FAILURES)[PHASES_BEFORE_REPORTS:]
    found = explore(start, phases, broken, stop_at=variant.breaks)
    return any(each.startswith(variant.breaks) for each in found.violations)


def found_by_dice(variant: Variant) -> bool:
    worlds = starts(variant.kind, bench=variant.bench)
    play = partial(played, rules=variant.rules, rounds=variant.rounds)
    return any(
        each.startswith(variant.breaks)
        for seed in range(VARIANT_RUNS)
        for each in play(seed, worlds[seed % len(worlds)])[0].broken
    )
