"""Equations and wires of a statement are kept apart."""

from dataclasses import replace

import numpy as np
import pytest
from small_statements import GRADIENT_BITS, RULES, TOLERANCE

from opfl_chain.protocol.proof.closing import Commitment, Statement, seal
from opfl_chain.protocol.proof.evaluation import Evaluation
from opfl_chain.protocol.proof.statement import Builder
from opfl_chain.protocol.proof.wires import StatementError, constant


def test_equations_of_one_name_are_refused() -> None:
    builder = Builder(RULES)
    wire = builder.ring("input", 0, (2,), 4)
    builder.exact("first", wire.quadratic)
    with pytest.raises(StatementError, match="equation first exists already"):
        builder.exact("first", wire.times(2).quadratic)


def test_wires_that_are_gone_leave_no_values_behind() -> None:
    value = Evaluation()
    found = [value(constant(k, (1,), 0)).to_python()[0] for k in range(100)]
    assert found == list(range(100))


def tiny(bits: int, commitment_bits: int = GRADIENT_BITS) -> Statement:
    builder = Builder(RULES)
    wire = builder.ring("input", 0, (1, 2), bits)
    builder.add_gradient("weight", wire, wire.gather(np.array([[0]])))
    factor = constant(1, (1,), 0)
    return seal(builder, ["weight"], factor, Commitment(commitment_bits, 1), TOLERANCE)


@pytest.mark.parametrize(("bits", "commitment_bits"), [(20, 10), (29, 60)])
def test_gradient_with_too_few_fraction_bits_is_refused(bits: int, commitment_bits: int) -> None:
    with pytest.raises(StatementError, match="fraction bits"):
        tiny(bits, commitment_bits)


def test_hash_covers_the_scale_of_each_part_of_the_gradient() -> None:
    def statement(finer: int) -> Statement:
        builder = Builder(RULES)
        wire = builder.ring("input", 0, (1, 2), 29)
        for name, extra in ("first", finer), ("second", 0), ("third", 4):
            right = wire.gather(np.array([[0]]))
            builder.add_gradient(name, wire, replace(right, bits=right.bits + extra))
        factor = constant(1, (1,), 0)
        names = ["first", "second", "third"]
        return seal(builder, names, factor, Commitment(GRADIENT_BITS, 1), TOLERANCE)

    first, second = statement(0), statement(2)
    assert first.gradient_bits == second.gradient_bits
    assert first.hash != second.hash
