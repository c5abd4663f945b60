"""Checks and reports of `opfl bench faults`."""

from dataclasses import dataclass, field

import pytest

from opfl_chain.bench.faults import (
    PLAN,
    faults_markdown,
    faults_report,
    losses,
    plan_of,
    wrong_verdicts,
)
from opfl_chain.jobs.localnet.outcome import LEFT_OUT, PASSED
from opfl_chain.trail.report import Report

FAILED = "OUTSIDE"
CLIENTS = {"client-0", "client-1", "client-2", "client-3"}
MEMBERS = {"member-0", "member-1", "member-2"}


@dataclass
class Ended:
    """A job that ended as it should: the cheat, client-3, is audited in round 1 alone."""

    rounds: int = 2
    unaccounted_wei: int = 0
    unowed_wei: int = 0
    verdicts: dict = field(default_factory=lambda: {(1, "client-3"): FAILED})
    paid: dict = field(default_factory=lambda: {(1, "client-3"): FAILED})
    lost: dict = field(default_factory=lambda: {"client-3": 10})
    absent: set = field(default_factory=set)
    suspended: set = field(default_factory=set)
    report: Report = field(default_factory=lambda: Report({}, ()))

    def is_final(self, number):
        return number < self.rounds

    def is_audited(self, number, name):
        return (number, name) == (1, "client-3")

    def verdict(self, number, name):
        return self.verdicts.get((number, name), PASSED)

    def charged(self):
        return self.paid

    def held(self):
        return self.suspended

    def seats(self, number):
        return sorted(MEMBERS)

    def seat_changes(self):
        return []

    def lost_wei(self, name):
        return self.lost.get(name, 0)

    def participants(self, number):
        return CLIENTS - self.absent

    def attested(self, number):
        return MEMBERS - self.absent


def test_job_that_ended_as_it_should_is_right():
    assert wrong_verdicts(PLAN, Ended()) == []
    assert losses(PLAN, Ended()) == {}


@pytest.mark.parametrize(
    ("ended", "problem"),
    [
        (Ended(verdicts={}), "round 1: client-3 is PASSED, it should be OUTSIDE"),
        (Ended(paid={}), "round 1: client-3 was charged for PASSED, not for OUTSIDE"),
        (
            Ended(verdicts={(0, "client-0"): LEFT_OUT, (1, "client-3"): FAILED}),
            "round 0: client-0 is LEFT_OUT, it should be PASSED",
        ),
        (
            Ended(paid={(0, "client-1"): "UNANSWERED", (1, "client-3"): FAILED}),
            "round 0: client-1 was charged for UNANSWERED, not for PASSED",
        ),
        (Ended(rounds=1), "round 1 has no result"),
    ],
)
def test_wrong_verdict_is_named(ended, problem):
    assert wrong_verdicts(PLAN, ended) == [problem]


@pytest.mark.parametrize(
    ("ended", "loss"),
    [
        (Ended(lost={"client-0": 3}), {"client-0 lost 3 wei": 3}),
        (Ended(lost={"member-1": 7}), {"member-1 lost 7 wei": 7}),
        (Ended(unaccounted_wei=-2), {"wei are unaccounted for": 2}),
        (Ended(unowed_wei=5), {"wei in the contract are owed to nobody": 5}),
        (
            Ended(absent={"member-2"}),
            {f"round {number}: the work of member-2 is missing": 0 for number in (0, 1)},
        ),
    ],
)
def test_loss_is_named(ended, loss):
    assert losses(PLAN, ended) == loss


def test_a_held_audit_excuses_a_missing_client_in_later_rounds_only():
    away = {"verdicts": {(1, "client-0"): LEFT_OUT, (1, "client-3"): FAILED}}
    later = Ended(**away, suspended={(0, "client-0")})
    later.participants = lambda number: CLIENTS - ({"client-0"} if number else set())
    assert wrong_verdicts(PLAN, later) == [] and losses(PLAN, later) == {}
    later.suspended = set()
    assert wrong_verdicts(PLAN, later) and losses(PLAN, later)


def test_a_round_is_void_by_rule_only_if_held_audits_leave_too_few_who_can_contribute():
    void = Ended(verdicts={}, paid={}, lost={})
    void.is_final = lambda number: number == 0
    void.is_audited = lambda number, name: False
    void.participants = lambda number: set() if number else CLIENTS
    void.attested = lambda number: set() if number else MEMBERS
    void.suspended = {(0, "client-0"), (0, "client-3")}
    assert wrong_verdicts(PLAN, void) == [] and losses(PLAN, void) == {}
    void.suspended = {(0, "client-0")}
    assert wrong_verdicts(PLAN, void) == ["round 1 has no result"]
    assert "round 1: the work of member-0 is missing" in losses(PLAN, void)


def test_a_lazy_member_must_lose_its_seat():
    plan = plan_of(2)
    assert any(plan.members)
    assert wrong_verdicts(plan, Ended()) == ["the member that does no audits kept its seat"]


def test_report_adds_up_what_went_wrong():
    right = {"wrong_verdicts": [], "lost": [], "lost_wei": 0, "stuck": None, "kills": [{}] * 2}
    wrong = {**right, "wrong_verdicts": ["one"], "lost": ["3 wei"], "lost_wei": 3, "kills": [{}]}
    stuck = {**right, "stuck": "for ever"}
    total = faults_report([{**each, "seconds": 1.0} for each in (right, wrong, stuck)])
    counts = [total[name] for name in ("runs", "wrong_verdicts", "lost_wei", "stuck_runs", "kills")]
    assert counts == [3, 1, 3, 1, 5]
    assert faults_markdown(total).splitlines()[-1] == "| 3 | 5 | 1 | 3 | 0 | 1 |"
