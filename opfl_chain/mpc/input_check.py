"""Whether a training input is one, inside MPC: features in their range, and one class an example.

A commitment binds any words. Without this, features a thousand times too large, or a target of a
thousand instead of one, would be replayed faithfully and make a gradient as large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opfl_chain.mpc.arithmetic import Held, add_public, join, negative, to_boolean
from opfl_chain.mpc.boolean import BooleanCircuit, Shared
from opfl_chain.protocol.inputs import InputFormat

_SIGN = np.uint64(63)


@dataclass(frozen=True)
class InputRules:
    """What of an input's format is checked."""

    feature_words: int
    classes: int
    one: int
    lowest: int
    highest: int

    @classmethod
    def of(cls, form: InputFormat) -> InputRules:
        lowest, highest = form.feature_bounds
        return cls(form.feature_words, form.classes, 1 << form.fraction_bits, lowest, highest)


def input_faults(circuit: BooleanCircuit, rules: InputRules, words: Held) -> Shared:
    """Return words that are zero if what is given encodes an input."""
    rank = circuit.rank
    features = words[0][: rules.feature_words], words[1][: rules.feature_words]
    targets = words[0][rules.feature_words :], words[1][rules.feature_words :]
    sums = tuple(part.reshape(-1, rules.classes).sum(1) for part in targets)
    summands = [
        add_public(rank, features, -rules.lowest),
        add_public(rank, negative(features), rules.highest),
        targets,
        sums,
    ]
    bits = to_boolean(circuit, *(np.concatenate(part) for part in zip(*summands, strict=True)))
    in_range, one_hot = bits[: 2 * rules.feature_words], bits[2 * rules.feature_words :]
    count = targets[0].size
    one = np.uint64(rules.one)
    return join(
        in_range.local(lambda w: w >> _SIGN),
        one_hot[:count].masked(~one),
        circuit.xor_public(one_hot[count:], one),
    )
