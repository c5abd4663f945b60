"""Last lines of a demo: what a bad member or server achieved is said as it was."""

from types import SimpleNamespace

import pytest

from opfl_chain.jobs.demo.tables import summary
from opfl_chain.protocol.economics import ETHER


def ended(final=2, paid=0, server=None):
    faults = ["falsehood in round 0"] if paid else []
    member = SimpleNamespace(name="member-2", cheat="few", penalised=paid * ETHER, faults=faults)
    return SimpleNamespace(
        clients=[],
        cheats_audited=0,
        honest_clients_lost=0,
        honest_members_lost=0,
        rounds_final=final,
        outcome=SimpleNamespace(rounds=2, trail=SimpleNamespace(entries=[])),
        bad_members=[member],
        plan=SimpleNamespace(server=server),
        accuracies={},
        seconds=1.0,
        trail=SimpleNamespace(facts={}, holds=True),
    )


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (ended(paid=20), "member-2 (few) paid 20 ETH for falsehood in round 0"),
        (ended(), "member-2 (few) paid nothing, as nothing shows it to be at fault; 2 of 2 rounds"),
        (ended(final=1), "at fault; 1 of 2 rounds are final"),
        (ended(server="idle"), "server (idle) stopped nothing: 2 of 2 rounds are final"),
        (ended(final=1, server="idle"), "server (idle) cheated: 1 of 2 rounds are final"),
    ],
)
def test_summary_says_what_an_attack_achieved(result, line):
    assert line in summary(result).plain
