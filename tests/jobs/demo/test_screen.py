"""The live view of a running job."""

import io

from rich.console import Console

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.jobs.demo.screen import Screen, overview
from opfl_chain.jobs.demo.status import JobStatus, Mark, MemberStatus, Phase
from opfl_chain.protocol.economics import ETHER

STATUS = JobStatus(
    seconds=12.0,
    block=950,
    rounds=12,
    phase=Phase(2, 3, 1040),
    grid={
        "client-0": [Mark.TRUSTED, Mark.PASSED, Mark.CHOSEN],
        "client-1": [Mark.TRUSTED, Mark.CHARGED, Mark.ABSENT],
    },
    deposits={"client-0": 10 * ETHER, "client-1": 0},
    earned={"client-0": ETHER // 50, "client-1": ETHER // 100},
    members={
        "member-0": MemberStatus(None, 20 * ETHER, 0, ETHER // 10),
        "member-1": MemberStatus("flip", 0, None, 0, [(1, MemberFault.FALSEHOOD)]),
    },
    up={"server": True, "member-0": False},
    cheats={"client-0": None, "client-1": "reuse:2"},
    charged={"client-1": 1},
    accuracies={0: 0.1, 1: 0.256},
)


def lines_of(*shown, width=120, terminal=False):
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal)
    for each in shown:
        console.print(each)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_the_overview_says_where_the_job_is():
    shown = lines_of(overview(STATUS))
    text = "\n".join(shown)
    assert "round 2  deliver ▸ roll ▸ beacon ▸ answer and audit ▸ sum" in text
    assert "rounds 0 to 11" in text
    assert "block 950, this phase until block 1040 (90 left)" in text
    honest, cheat = (next(line for line in shown if name in line) for name in STATUS.grid)
    assert "honest" in honest
    assert "10 ETH" in honest
    assert "0.02 ETH" in honest
    assert "· ✓ ?" in honest
    assert "reuse:2" in cheat
    assert "· ✗" in cheat
    assert "charged in round 1" in cheat
    member, liar = (next(line for line in shown if name in line) for name in STATUS.members)
    assert "20 ETH   0.1 ETH   0" in member
    assert "bench" in liar
    assert "falsehood in round 1" in liar
    assert "10% → 26%" in text
    assert "server ●" in text
    assert "✗ member-0" in text


def test_without_a_terminal_every_event_is_a_line():
    stream = io.StringIO()
    with Screen(Console(file=stream, width=40)) as screen:
        screen.starting(0.5, "set-up", "starting the chain")
        screen.tell(61.25, "charge", "client-4 has lost 10 ETH, which is longer than the terminal")
        screen.show(STATUS)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].endswith("has lost 10 ETH, which is longer than the terminal")
    assert "61.2 s  charge" in lines[1]
