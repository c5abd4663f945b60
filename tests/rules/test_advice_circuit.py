"""The advice check inside MPC, on the vectors of the specification."""

import json
from pathlib import Path

import numpy as np
import pytest
from three_members import compute, held, ring_components

from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.rules.guided_circuit import FollowedAdvice, advice_faults
from opfl_chain.rules.registry import boundary_from_json

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "guided.json").read_text())
BOUNDARY = boundary_from_json(VECTOR["boundary"].encode())


@pytest.mark.parametrize("case", VECTOR["advice"], ids=lambda case: case["why"])
def test_advice(case):
    form = AdviceFormat(2, 2, 1, VECTOR["fractionBits"])
    rng = np.random.default_rng(2)
    ceilings = [12345]  # arbitrary: only the replay uses them
    parts = [
        ring_components(np.array(words), rng)
        for words in (
            [*case["masks"], *case["lifts"], *ceilings],
            case["values"],
            [int(argument) for argument in case["arguments"]],
            case["totals"],
            [1 << VECTOR["fractionBits"], 0],
        )
    ]

    def member(circuit):
        followed = FollowedAdvice(*(held(part, circuit.rank) for part in parts))
        tolerances = BOUNDARY.mask_tolerance, BOUNDARY.ceiling_tolerance
        return circuit.open(advice_faults(circuit, form, followed, *tolerances))

    assert compute(member).any() != case["borneOut"]
