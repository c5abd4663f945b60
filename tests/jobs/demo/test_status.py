"""The phase of a round and the state of a contribution, as the live view shows them."""

from dataclasses import dataclass, replace

import pytest

from opfl_chain.chain.bindings.types import ChargeStatus, Schedule
from opfl_chain.jobs.demo.page import _when
from opfl_chain.jobs.demo.status import Mark, mark_of, phase_of
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.view.records import ChargeView, ClientView, RollView, RoundView

SCHEDULE = Schedule(
    deliver=20, roll=60, beacon=80, answer=120, attest=280, finalise=360, response=400
)
ROLL = RollView(bytes(32), 3, b"")
ROUND = RoundView(
    id=1 << 32,
    number=4,
    model_hash=bytes(32),
    opening=bytes(32),
    epoch=0,
    opened_at=0,
    schedule=SCHEDULE,
    roll=None,
    rolled_at=None,
    seed=None,
    verdict_hash=None,
    decided_at=None,
    over=None,
    over_at=None,
    aggregate_hash=None,
    next_model_hash=None,
)


@pytest.mark.parametrize(
    ("known", "block", "name", "deadline"),
    [
        ({}, 19, "deliver", 20),
        ({}, 20, "roll", 60),
        ({"roll": ROLL}, 19, "beacon", 80),  # all have delivered early
        ({"roll": ROLL, "seed": bytes(32)}, 25, "answer and audit", 280),
        ({"roll": ROLL}, 80, "answer and audit", 280),  # without a beacon everybody is audited
        ({"roll": ROLL, "seed": bytes(32), "verdict_hash": bytes(32)}, 90, "sum", 360),
        ({"over": "void"}, 400, "over", None),
    ],
)
def test_phases_of_a_round(known, block, name, deadline):
    phase = phase_of(replace(ROUND, **known), block)
    assert (phase.round, phase.name, phase.deadline) == (4, name, deadline)


@dataclass
class View:
    """Knowledge of a view about one client of one round."""

    listed: bool = True
    audited: bool = True
    passed: bool | None = None
    """None before the verdict."""
    charged: ChargeStatus | None = None

    def on_roll(self, round_, client):
        return self.listed

    def is_audited(self, round_, client):
        return self.audited

    def decided_passes(self, round_):
        return Verdict.of({3} if self.passed else set()).passes_bytes

    def clients(self):
        return {"0xc": ClientView("0xc", 3, bytes(32))}

    def charge(self, round_, client):
        return self.charged and ChargeView(4, client, 1, 90, self.charged, None, None)


@pytest.mark.parametrize(
    ("view", "mark"),
    [
        (View(listed=False), Mark.ABSENT),
        (View(audited=False), Mark.ON_ROLL),
        (View(), Mark.CHOSEN),
        (View(audited=False, passed=True), Mark.TRUSTED),
        (View(passed=True), Mark.PASSED),
        (View(audited=False, passed=False), Mark.LEFT_OUT),
        (View(passed=False), Mark.HELD),
        (View(passed=False, charged=ChargeStatus.HELD), Mark.HELD),
        (View(passed=False, charged=ChargeStatus.CHARGED), Mark.CHARGED),
        (View(passed=False, charged=ChargeStatus.ACQUITTED), Mark.ACQUITTED),
    ],
)
def test_state_of_a_contribution(view, mark):
    decided = bytes(32) if view.passed is not None else None
    round_ = replace(ROUND, roll=ROLL, seed=bytes(32), verdict_hash=decided)
    assert mark_of(view, round_, "0xc", 100) is mark


def test_contribution_to_a_void_round_is_left_out():
    round_ = replace(ROUND, roll=ROLL, seed=bytes(32), over="void")
    assert mark_of(View(), round_, "0xc", 300) is Mark.LEFT_OUT


def test_a_block_lies_between_two_rounds():
    opened = [100, 140, 180]
    assert [_when(block, opened) for block in (5, 100, 120, 140, 170, 500)] == [
        0,
        0,
        0.5,
        1,
        1.75,
        3,
    ]
