"""Tampering inside MPC, and what it achieves: audits there assume that members follow it."""

import json
from pathlib import Path

import numpy as np
import pytest
from three_members import held, ring_components, run_members

from opfl_chain.adversaries.flip_in_mpc import FlippingCircuit
from opfl_chain.adversaries.leak_in_mpc import LeakingCircuit, leaking_input_faults
from opfl_chain.circuits.arithmetic import any_bit
from opfl_chain.circuits.boolean import BooleanCircuit
from opfl_chain.mpc.audit.checks import InputRules

BAD = 0
FRACTION_BITS = 22
INPUTS = json.loads((Path(__file__).parents[1] / "vectors" / "inputs.json").read_text())
RULES = InputRules(2, 3, 1 << FRACTION_BITS, *INPUTS["checkedBounds"])
FIRST_CLASS, LAST_CLASS = ([0, 0, *(np.eye(3, dtype=int)[k] << FRACTION_BITS)] for k in (0, 2))


def one_bad(kind):
    """One member has this circuit, the others are honest."""
    return lambda transport, seed: (kind if transport.rank == BAD else BooleanCircuit)(
        transport, seed
    )


def test_a_flipped_bit_is_the_same_for_two_of_three():
    opened, _ = run_members(
        lambda circuit: circuit.open(circuit.public(np.array([0, 1], np.uint64))).tolist(),
        one_bad(FlippingCircuit),
    )
    assert opened == [[1, 0], [1, 0], [0, 1]]


def opened(parts, kind):
    """Return the bit that is opened on an input, which all members open alike."""
    results, _ = run_members(
        lambda circuit: int(
            circuit.open(
                any_bit(circuit, leaking_input_faults(circuit, RULES, held(parts, circuit.rank)))
            )[0]
        ),
        one_bad(kind),
    )
    assert len(set(results)) == 1
    return results[0]


def read(bit, parts):
    """Return what the bad member concludes from the bit and the components that it holds.

    The lower bits of all components add up to zero, so that it knows those of the third as well.
    """
    ours = [int(words[RULES.feature_words]) for words in held(parts, BAD)]
    below = (1 << FRACTION_BITS) - 1
    a, b = (word & below for word in ours)
    c = -(a + b) & below
    carried = (a & b | a & c | b & c) << 1
    carry = ((a ^ b ^ c) + (carried & below)) >> FRACTION_BITS
    return bit ^ carry & 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("words", "secret"), [(FIRST_CLASS, 1), (LAST_CLASS, 0)])
def test_the_bit_opened_on_an_honest_input_tells_its_label(words, secret, seed):
    parts = ring_components(np.array(words), np.random.default_rng(seed))
    assert read(opened(parts, LeakingCircuit), parts) == secret


def test_the_opened_bit_is_zero_without_the_attack(monkeypatch):
    parts = ring_components(np.array(FIRST_CLASS), np.random.default_rng(0))
    assert opened(parts, BooleanCircuit) == 0
    monkeypatch.setattr(LeakingCircuit, "armed", False)
    assert opened(parts, LeakingCircuit) == 0
