"""The clock of a job on one machine, over a chain and daemons that are made up."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from opfl_chain.jobs.localnet.clock import Clock, DaemonReport
from opfl_chain.jobs.localnet.daemon import NoProgress


class Chain:
    """A chain whose blocks have their numbers as hashes."""

    def __init__(self):
        self.head = 10
        self.rpc = SimpleNamespace(
            block_number=lambda: self.head,
            batch_or_raise=lambda calls: [{"hash": params[0]} for _, params in calls],
        )

    def mine(self, blocks=1):
        self.head += blocks


class Daemon:
    """A daemon that settles at every block as soon as it is asked, unless a test says otherwise."""

    def __init__(self, chain):
        self._chain = chain
        self.changes = {}
        self.asked = 0

    def report(self):
        self.asked += 1
        head = self._chain.head
        return replace(DaemonReport(1, None, head, head, hex(head), next_block=90), **self.changes)


@pytest.fixture
def chain():
    return Chain()


@pytest.fixture
def daemons(chain):
    return {name: Daemon(chain) for name in ("server", "member-0", "client-0")}


@pytest.fixture
def clock(chain, daemons):
    return Clock(chain, lambda: {name: daemon.report for name, daemon in daemons.items()})


def test_everybody_is_asked_twice_before_blocks_are_skipped(chain, daemons, clock):
    assert clock.tick()
    assert chain.head == 90
    assert {daemon.asked for daemon in daemons.values()} == {2}


def test_busy_daemon_holds_the_clock_and_alone_is_asked_again(chain, daemons, clock):
    daemons["client-0"].changes = {"busy": "training"}
    assert not any(clock.tick() for _ in range(5))
    assert chain.head == 10
    assert clock.waits_for == "client-0 is busy: training"
    assert (daemons["server"].asked, daemons["client-0"].asked) == (1, 5)
    daemons["client-0"].changes = {}
    assert clock.tick() and chain.head == 90


def test_nobody_else_is_asked_while_one_is_busy(chain, daemons, clock):
    daemons["server"].changes = {"busy": "acting"}
    assert not any(clock.tick() for _ in range(5))
    assert (daemons["server"].asked, daemons["client-0"].asked) == (5, 0)
    daemons["server"].changes = {}
    assert clock.tick() and chain.head == 90


def test_daemon_active_between_two_reports_holds_the_clock(chain, daemons, clock):
    """A message of another came after it was asked."""
    counts = iter(range(2, 100))
    asked = daemons["server"].report
    daemons["server"].report = lambda: replace(asked(), activity=next(counts))
    assert not any(clock.tick() for _ in range(5))
    assert chain.head == 10


def test_a_transaction_gets_one_block(chain, daemons, clock):
    daemons["client-0"].changes = {"transaction": "commit 3"}
    assert clock.tick() and chain.head == 11


def test_blocks_are_not_skipped_past_a_planned_restart(chain, clock):
    clock.planned["member-1"] = 15
    assert clock.tick() and chain.head == 15


def test_a_job_in_which_nobody_waits_for_anything_is_given_up(daemons, clock):
    for daemon in daemons.values():
        daemon.changes = {"next_block": None}
    with pytest.raises(NoProgress, match="none of them waits for a later block"):
        for _ in range(1000):
            clock.tick()


def test_processes_that_take_long_to_end_are_waited_for(chain, daemons, clock):
    daemons.clear()
    assert not any(clock.tick() for _ in range(200))
    assert chain.head == 10
    clock.planned["member-0"] = 15
    assert clock.tick()
    assert chain.head == 15
