"""Whether a replay bears out what its client advised, inside MPC.

Masks and lifts must be bits and one lift must be chosen; every value must be on the side of its
ReLU that the mask says; arguments must be where the exponential is one, and its sums where the
reciprocal is; and the lift must be no lower than it could be, for the bound is as coarse as the
replay. All of it is up to a tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from opfl_chain.mpc.arithmetic import (
    Held,
    add_public,
    any_bit,
    disjunction,
    join,
    negative,
    to_boolean,
)
from opfl_chain.mpc.boolean import BooleanCircuit, Shared
from opfl_chain.protocol.advice import LOWEST_ARGUMENT, AdviceFormat

_SIGN = np.uint64(63)
_BIT = np.uint64(1)


@dataclass(frozen=True)
class FollowedAdvice:
    """Advice, and what the replay says about it, all flat. Two ring components of each."""

    advice: Held
    pre_activations: Held
    arguments: Held
    """Of the exponentials: logits less their ceilings, which are lifted where not the label's."""
    totals: Held
    """Of the exponentials, one for each example."""
    targets: Held
    """Of the input, which is checked to be one-hot elsewhere."""


def advice_faults(
    circuit: BooleanCircuit,
    form: AdviceFormat,
    followed: FollowedAdvice,
    mask_tolerance: int,
    ceiling_tolerance: int,
) -> Shared:
    """Return words that are zero if all is as it was advised."""
    rank, one = circuit.rank, 1 << form.fraction_bits
    octave = math.ceil(math.log(2) * one)
    bits = tuple(part[: form.lifts.stop] for part in followed.advice)
    chosen = tuple(np.sum(part[form.lifts], keepdims=True) for part in followed.advice)
    values, arguments, totals = followed.pre_activations, followed.arguments, followed.totals
    summands = [
        bits,
        chosen,
        add_public(rank, values, mask_tolerance),
        add_public(rank, negative(values), mask_tolerance),
        add_public(rank, negative(arguments), ceiling_tolerance),
        add_public(rank, totals, ceiling_tolerance - one),
        add_public(rank, arguments, -LOWEST_ARGUMENT * one),
        add_public(rank, arguments, octave + ceiling_tolerance),
        followed.targets,
    ]
    words = to_boolean(circuit, *(np.concatenate(part) for part in zip(*summands, strict=True)))
    ends = np.cumsum([summand[0].size for summand in summands])
    parts = [words[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    bit_words, chosen_word, *signed, targets = parts
    too_low, too_high, over, short, under, far = (
        part.local(lambda w: w >> _SIGN) for part in signed
    )
    masks = bit_words[form.masks].masked(_BIT)
    wrong_side = too_high ^ circuit.conjunction(masks, too_low ^ too_high)
    is_label = targets.local(lambda w: w >> np.uint64(form.fraction_bits)).masked(_BIT)
    close = circuit.conjunction(circuit.xor_public(far, _BIT), circuit.xor_public(is_label, _BIT))
    lifts = bit_words[form.lifts].masked(_BIT)
    highest = lifts[-2:-1] ^ lifts[-1:]
    could_be_higher = circuit.xor_public(
        disjunction(circuit, any_bit(circuit, close), highest), _BIT
    )
    return join(
        bit_words.masked(~_BIT),
        circuit.xor_public(chosen_word, _BIT),
        wrong_side,
        over,
        short,
        under,
        could_be_higher,
    )
