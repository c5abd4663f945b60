"""Whether a replay bears out what its client advised, inside MPC.

Masks and lifts must be bits and one lift must be chosen; every value must be on the side of its
ReLU that the mask says, and no logit above its ceiling, each but for a tolerance; and some logit
must be at its ceiling, for the reciprocal of the sum of exponentials is only good from 1 on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opfl_chain.mpc.arithmetic import add_public, any_bit, join, negative, to_boolean
from opfl_chain.mpc.boolean import BooleanCircuit, Shared, Words
from opfl_chain.protocol.advice import AdviceFormat

_SIGN = np.uint64(63)
_BIT = np.uint64(1)

Held = tuple[Words, Words]


@dataclass(frozen=True)
class FollowedAdvice:
    """Advice, and what the replay says about it, all flat. Two ring components of each."""

    advice: Held
    pre_activations: Held
    arguments: Held
    """Of the exponentials: logits less their ceilings, which are lifted where not the label's."""
    totals: Held
    """Of the exponentials, one for each example."""


def bears_out(
    circuit: BooleanCircuit,
    form: AdviceFormat,
    followed: FollowedAdvice,
    mask_tolerance: int,
    ceiling_tolerance: int,
) -> Shared:
    """Return a word whose lowest bit says that all is as it was advised."""
    rank, one = circuit.rank, 1 << form.fraction_bits
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
    ]
    words = to_boolean(circuit, *(np.concatenate(part) for part in zip(*summands, strict=True)))
    ends = np.cumsum([summand[0].size for summand in summands])
    parts = [words[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    bit_words, chosen_word, is_not_below, is_not_above, under_ceiling, reaches_one = parts
    too_low, too_high, over, short = (
        part.local(lambda w: w >> _SIGN)
        for part in (is_not_below, is_not_above, under_ceiling, reaches_one)
    )
    masks = bit_words[form.masks].masked(_BIT)
    wrong_side = too_high ^ circuit.conjunction(masks, too_low ^ too_high)
    faults = join(
        bit_words.masked(~_BIT),
        circuit.xor_public(chosen_word, _BIT),
        wrong_side,
        over,
        short,
    )
    return circuit.xor_public(any_bit(circuit, faults), _BIT)
