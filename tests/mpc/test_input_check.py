"""The input check inside MPC, on the vectors of the specification."""

import json
from pathlib import Path

import numpy as np
import pytest
from three_members import compute, held, ring_components

from opfl_chain.mpc.audit.checks import InputRules, input_faults

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "inputs.json").read_text())


@pytest.mark.parametrize("case", VECTOR["checked"], ids=lambda case: case["why"])
def test_inputs(case):
    rules = InputRules(2, 3, 1 << 22, *VECTOR["checkedBounds"])
    parts = ring_components(np.array(case["words"]), np.random.default_rng(1))
    faults = compute(
        lambda circuit: circuit.open(input_faults(circuit, rules, held(parts, circuit.rank)))
    )
    assert faults.any() != case["isInput"]
