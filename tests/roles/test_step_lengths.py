"""Members' steps, and the shortest phases that they fit into."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from opfl_chain.roles.member import hearings, rolls, sums
from opfl_chain.roles.member.steps import parts_of

VECTOR = json.loads(
    (Path(__file__).resolve().parents[1] / "vectors" / "steps.json").read_text(encoding="utf-8")
)
ATTESTATION = 1
"""The block of the attest phase that its first hearing leaves."""


def test_parts_end_where_the_specification_says():
    cases = zip(VECTOR["starts"], VECTOR["ends"], VECTOR["parts"], strict=True)
    assert [parts_of(*case) for case in cases] == VECTOR["partEnds"]


@pytest.mark.parametrize(
    ("phase", "parts", "left"),
    [
        ("roll", rolls.PARTS, 0),
        ("attest", hearings.PARTS, ATTESTATION),
        ("finalise", sums.PARTS, 0),
    ],
)
def test_every_step_has_a_block_exactly_from_the_shortest_phase_on(phase, parts, left):
    start, shortest = 1000, VECTOR["shortest"][phase]
    for length in range(shortest - 2, shortest + 100):
        ends = parts_of(start, start + length - left, parts)
        fits = all(earlier < later for earlier, later in pairwise([start, *ends]))
        assert fits == (length >= shortest), length
