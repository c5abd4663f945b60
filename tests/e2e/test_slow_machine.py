"""A machine that is slow changes nothing but how long a job takes."""

import os
import signal
import subprocess
import sys
import time

import pytest
from expectations import EveryJob
from scenario import Scenario

from opfl_chain.bench.attacks.disturbances import Disturbance
from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.localnet.outcome import OUTSIDE, PASSED

HONEST = ("client-0", "client-1", "client-2")
CHEAT = "amplify:10"
STOPPED_SECONDS = 6.0
"""Longer than a member is waited for where time is real, and than a phase would last there."""
HOGS = 8


class Stopped(Disturbance):
    """Stops a member when it should judge, and a client when it should deliver."""

    def __init__(self, net):
        super().__init__(net)
        self.held: dict[str, int] = {}
        """By how many blocks the chain grew while a daemon was stopped."""

    def __call__(self):
        round_ = self._net.view.latest_round()
        if round_ is None or round_.over is not None:
            return
        if round_.number == 1 and "client-0" not in self.held:
            self._stop("client-0")
        if round_.seed is not None and round_.number == 0 and "member-1" not in self.held:
            self._stop("member-1")

    def _stop(self, name):
        """Let everybody else go on, if they can, while one cannot."""
        net = self._net
        head = net.devnet.rpc.block_number()
        self.held[name] = -1
        os.kill(net.daemons[name].pid, signal.SIGSTOP)
        until = time.monotonic() + STOPPED_SECONDS
        try:
            net.wait_until(lambda: time.monotonic() > until, "the time is over")
        finally:
            os.kill(net.daemons[name].pid, signal.SIGCONT)
        self.held[name] = net.devnet.rpc.block_number() - head


class Hogged(Disturbance):
    """Processes beside the job that take all the time they get."""

    def __init__(self, net):
        super().__init__(net)
        self._hogs = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(HOGS)
        ]

    def close(self):
        for hog in self._hogs:
            hog.kill()
            hog.wait()


class SameVerdicts(EveryJob):
    """Those of an undisturbed job: all are audited, so they do not depend on any seed."""

    def test_verdicts_are_those_of_an_idle_machine(self, outcome):
        verdicts = [outcome.verdict(0, name) for name in (*HONEST, "client-3")]
        assert verdicts == [PASSED, PASSED, PASSED, OUTSIDE]
        assert [outcome.verdict(1, name) for name in HONEST] == [PASSED] * 3

    def test_all_members_attest_in_every_round(self, outcome):
        for number in range(outcome.rounds):
            assert outcome.attested(number) == {"member-0", "member-1", "member-2"}

    def test_only_the_cheat_pays(self, outcome):
        assert outcome.charged() == {(0, "client-3"): OUTSIDE}
        assert outcome.lost_wei("client-3") == DEPOSIT


class TestStoppedDaemons(SameVerdicts):
    scenario = Scenario.of(Stopped, clients=(None, None, None, CHEAT), rounds=2, audit_rate=1.0)

    @pytest.mark.parametrize("name", ["member-1", "client-0"])
    def test_clock_stands_still_while_a_daemon_is_stopped(self, played, name):
        """So no deadline comes nearer, and nobody does without it."""
        assert played.meanwhile.held[name] == 0


class TestBusyMachine(SameVerdicts):
    scenario = Scenario.of(Hogged, clients=(None, None, None, CHEAT), rounds=2, audit_rate=1.0)
