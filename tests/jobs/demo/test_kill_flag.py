"""Kills as a user writes them."""

import pytest

from opfl_chain.jobs.demo.demo import Kill
from opfl_chain.jobs.localnet.daemon import PlanInvalid
from opfl_chain.jobs.localnet.plan import Plan

PLAN = Plan(rounds=6)


@pytest.mark.parametrize(
    ("text", "kill"),
    [
        ("committee:1@round3", Kill("member-1", 3)),
        ("client:0@round0", Kill("client-0", 0)),
        ("standby:0@round1", Kill("standby-0", 1)),
        ("server@round5", Kill("server", 5)),
    ],
)
def test_kills_are_read(text, kill):
    assert Kill.parse(text, PLAN) == kill


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("committee@round3", "ROLE:N@roundR"),
        ("server:0@round3", "ROLE:N@roundR"),
        ("member:0@round3", "ROLE:N@roundR"),
        ("committee:3@round0", "there are 3"),
        ("standby:1@round0", "there are 1"),
        ("client:5@round0", "there are 5"),
        ("client:0@round6", "from 0 to 5"),
    ],
)
def test_invalid_kill_is_explained(text, said):
    with pytest.raises(PlanInvalid, match=said):
        Kill.parse(text, PLAN)
