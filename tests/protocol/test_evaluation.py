"""The values of wires are those of the wires that are asked for, however long these live."""

from __future__ import annotations

import gc

import numpy as np

from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.proof.evaluation import Evaluation
from opfl_chain.protocol.proof.wires import constant, leaf


def test_a_wire_that_is_gone_gives_its_value_to_no_other() -> None:
    value = Evaluation()
    words = leaf("words", "words", (3,), 0, 1 << 20)
    value.set(words, Elements.of_integers(np.arange(3)))
    for factor in range(1, 200):
        wire = words.times(factor) + constant(factor, (3,), 0)
        expected = [factor, 2 * factor, 3 * factor]
        assert value(wire).to_python() == expected
        del wire
        gc.collect(0)  # a full collection of a process with all frameworks takes half a second
