"""The phase of a round, as the live view shows it."""

from dataclasses import replace

import pytest

from opfl_chain.chain.bindings.types import Schedule
from opfl_chain.jobs.demo.page import _when
from opfl_chain.jobs.demo.status import phase_of
from opfl_chain.roles.view.view import RoundView

SCHEDULE = Schedule(commit=20, beacon=60, deliver=120, attest=280, finalise=360, request=360)
ROUND = RoundView(
    id=1 << 32,
    number=4,
    model_hash=bytes(32),
    schedule=SCHEDULE,
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
        ({}, 19, "commit", 20),
        ({}, 20, "beacon", 60),
        ({"seed": bytes(32)}, 25, "deliver and audit", 280),
        ({}, 60, "deliver and audit", 280),  # without a beacon everybody is audited
        ({"seed": bytes(32), "verdict_hash": bytes(32)}, 90, "aggregate", 360),
        ({"over": "void"}, 400, "over", None),
    ],
)
def test_phases_of_a_round(known, block, name, deadline):
    phase = phase_of(replace(ROUND, **known), block)
    assert (phase.round, phase.name, phase.deadline) == (4, name, deadline)


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
