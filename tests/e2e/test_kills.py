"""A few of the jobs of `opfl bench faults`: daemons are killed, and nothing is lost or doubled."""

import pytest

from opfl_chain.bench.faults import PLAN, draw_kills, points_of, run_with_faults

NAMES = ("server", "member-0", "member-1", "member-2", "client-0", "client-1", "client-2")


def test_same_seed_draws_the_same_kills_and_others_draw_others():
    drawn = [draw_kills(seed, NAMES, PLAN.rounds) for seed in range(50)]
    assert drawn == [draw_kills(seed, NAMES, PLAN.rounds) for seed in range(50)]
    kills = [kill for each in drawn for kill in each]
    assert {kill.name for kill in kills} == set(NAMES)
    assert {kill.point for kill in kills} == set(points_of(PLAN.rounds))


@pytest.mark.parametrize("seed", [6])
def test_killed_and_restarted_daemons_change_no_verdict_and_lose_no_wei(
    seed, one_at_a_time, template
):
    with one_at_a_time():
        run = run_with_faults(seed, template=template)
    assert run.kills
    assert run.is_right, run.report
