"""The boundary test of a guided replay inside MPC. Yields the verdict of `GuidedRule.causes` only.

A number's ladder is a word whose bit i says that the number is at least 2^i. Ladders make powers of
two easy: counting bit i of all coordinates' ladders tells whether their quantile reaches 2^i, the
larger of two powers is a disjunction, and the exponent's bits are sums of the ladder's bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np

from opfl_chain.circuits import arithmetic
from opfl_chain.circuits.bit_planes import WORD_BITS, planes_of, words_of
from opfl_chain.circuits.boolean import BooleanCircuit, Shared, Words
from opfl_chain.protocol.advice import LOWEST_ARGUMENT, AdviceFormat
from opfl_chain.rules.evidence import Evidence, Forms
from opfl_chain.rules.guided import GuidedBoundary
from opfl_chain.rules.paper_circuit import none_above, short_counts
from opfl_chain.rules.quantiles import need

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_EXPONENT_BITS = 6
_SIGN = np.uint64(63)
_BIT = np.uint64(1)


def guided_faults(
    circuit: BooleanCircuit, boundary: GuidedBoundary, evidence: Evidence, forms: Forms
) -> Shared:
    """Return words that are zero if and only if advice and replay are within the boundary.

    The replay is scaled to the commitment by the unused powers of two of the lift. Where there is
    nothing to learn the factor is zero, and so is the replay.
    """
    form, advice, outputs = forms.advice, evidence.advice, evidence.replay
    if form is None or advice is None:
        raise ValueError("a guided boundary needs the advice of every contribution")
    if outputs.pre_activations is None or outputs.arguments is None or outputs.totals is None:
        raise ValueError("a guided boundary needs the outputs of a guided replay")
    unused = np.arange(form.largest_lift, -1, -1, dtype=np.uint64)
    powers = np.append(np.uint64(1) << unused, np.uint64(0))
    own, following = (np.sum(part[form.lifts] * powers, keepdims=True) for part in advice)
    replay = circuit.product(Shared(*outputs.gradient), Shared(own, following))
    own_input, following_input = evidence.training_input
    followed = FollowedAdvice(
        advice,
        outputs.pre_activations,
        outputs.arguments,
        outputs.totals,
        (own_input[forms.feature_words :], following_input[forms.feature_words :]),
    )
    return arithmetic.join(
        scaled_faults(
            circuit,
            boundary,
            evidence.gradient,
            (replay.own, replay.following),
            arithmetic.add_public(circuit.rank, (own, following), -1),
        ),
        advice_faults(circuit, form, followed, boundary.mask_tolerance, boundary.ceiling_tolerance),
    )


def scaled_faults(
    circuit: BooleanCircuit,
    boundary: GuidedBoundary,
    gradient: arithmetic.Held,
    replay: arithmetic.Held,
    headroom_ladder: arithmetic.Held,
) -> Shared:
    """Return words that are zero if the discrepancies are inside the boundary.

    All arguments are this member's ring components; the ladder is one word. If there was nothing to
    learn it has all 64 rungs, and since exponents have six bits, nothing is shifted.
    """
    count = boundary.coordinates
    differences = gradient[0] - replay[0], gradient[1] - replay[1]
    sums = gradient[0] + replay[0], gradient[1] + replay[1]
    distance, total, headroom = arithmetic.to_planes(circuit, differences, sums, headroom_ladder)
    distance, total = _size(distance), _size(total)
    unit = _unit_ladder(circuit, boundary, total, headroom.local(lambda p: words_of(p, 1)))
    excess = _shifted_by(circuit, _excess(circuit, distance, total, boundary), unit)

    bits = max(*boundary.bounds, boundary.infinity, 1).bit_length()
    within = arithmetic.at_most_public(
        circuit, excess[:bits], [*boundary.bounds, boundary.infinity]
    )
    needed = [*(need(p, count) for p in boundary.grid), count]
    within = arithmetic.join(within[:-1], none_above(circuit, within[-1:], excess[bits:]))
    return short_counts(circuit, within, needed, count)


def _size(planes: Shared) -> Shared:
    """Return sizes up to one quantum: negative numbers are inverted."""
    return planes ^ planes[-1:]


def _unit_ladder(
    circuit: BooleanCircuit, boundary: GuidedBoundary, total: Shared, headroom: Shared
) -> Shared:
    """Return the ladder of the unit: scale >> resolution bits, or the headroom if larger."""
    from_the_top = total[::-1]
    ladders = arithmetic.carries(circuit, from_the_top, circuit.invert(from_the_top))[::-1]
    counts = arithmetic.count_lanes(
        circuit, ladders.local(lambda p: words_of(p, boundary.coordinates))
    )
    at_least = boundary.coordinates - need(boundary.scale_quantile, boundary.coordinates) + 1
    bounds = planes_of(np.full(WORD_BITS, at_least, np.uint64), counts.shape[0])
    scale = arithmetic.reaches(circuit, counts, bounds)
    resolution = np.uint64(boundary.resolution_bits)
    return arithmetic.disjunction(circuit, scale.local(lambda w: w >> resolution), headroom)


def _excess(
    circuit: BooleanCircuit, distance: Shared, total: Shared, boundary: GuidedBoundary
) -> Shared:
    """Return the distance less the allowance, or zero if the allowance is larger."""
    allowance = _divided(circuit, total, boundary.allowance_shift)
    differs = distance ^ allowance
    borrows = arithmetic.carries(
        circuit, circuit.conjunction(circuit.invert(distance), allowance), circuit.invert(differs)
    )
    difference = differs ^ arithmetic.raised(circuit, borrows)
    return circuit.conjunction(difference, circuit.invert(borrows[-1:]))


def _divided(circuit: BooleanCircuit, numbers: Shared, exponent: int) -> Shared:
    """Divide numbers in bit planes by a power of two."""
    nothing = circuit.public(np.zeros((exponent, *numbers.shape[1:]), np.uint64))
    return arithmetic.join(numbers[exponent:], nothing)


def _shifted_by(circuit: BooleanCircuit, numbers: Shared, ladder: Shared) -> Shared:
    """Divide numbers in bit planes by the power of two of a ladder."""
    for j in range(_EXPONENT_BITS):
        step = 1 << j
        chosen = Shared(_exponent_bit(ladder.own, step), _exponent_bit(ladder.following, step))
        moved = _divided(circuit, numbers, step)
        numbers ^= circuit.conjunction(numbers ^ moved, chosen[None])
    return numbers


def _exponent_bit(ladder: Words, step: int) -> Words:
    """Return all ones if the number of rungs has the bit `step`, else zero.

    The bit is the parity of the rungs step, 2 * step, 3 * step and so on: it is linear in them.
    """
    rungs = (ladder >> np.uint64(rung - 1) for rung in range(step, WORD_BITS + 1, step))
    odd: Words = reduce(np.bitwise_xor, rungs) & np.uint64(1)
    return odd * _ONES


@dataclass(frozen=True)
class FollowedAdvice:
    """Advice and the replay's values to check it against: two flat ring components of each."""

    advice: arithmetic.Held
    pre_activations: arithmetic.Held
    arguments: arithmetic.Held
    """Arguments of the exponentials: logits less ceilings, lifted for all but the label."""
    totals: arithmetic.Held
    """Sums of the exponentials, one for each example."""
    targets: arithmetic.Held
    """Targets of the input; `input_check` checks that they are one-hot."""


def advice_faults(
    circuit: BooleanCircuit,
    form: AdviceFormat,
    followed: FollowedAdvice,
    mask_tolerance: int,
    ceiling_tolerance: int,
) -> Shared:
    """Return words that are zero if the replay confirms the advice."""
    rank, one = circuit.rank, 1 << form.fraction_bits
    octave = math.ceil(math.log(2) * one)
    bits = tuple(part[: form.lifts.stop] for part in followed.advice)
    chosen = tuple(np.sum(part[form.lifts], keepdims=True) for part in followed.advice)
    values, arguments, totals = followed.pre_activations, followed.arguments, followed.totals
    summands = [
        bits,
        chosen,
        arithmetic.add_public(rank, values, mask_tolerance),
        arithmetic.add_public(rank, arithmetic.negative(values), mask_tolerance),
        arithmetic.add_public(rank, arithmetic.negative(arguments), ceiling_tolerance),
        arithmetic.add_public(rank, totals, ceiling_tolerance - one),
        arithmetic.add_public(rank, arguments, -LOWEST_ARGUMENT * one),
        arithmetic.add_public(rank, arguments, octave + ceiling_tolerance),
        followed.targets,
    ]
    words = arithmetic.to_boolean(
        circuit, *(np.concatenate(part) for part in zip(*summands, strict=True))
    )
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
        arithmetic.disjunction(circuit, arithmetic.any_bit(circuit, close), highest), _BIT
    )
    return arithmetic.join(
        bit_words.masked(~_BIT),
        circuit.xor_public(chosen_word, _BIT),
        wrong_side,
        over,
        short,
        under,
        could_be_higher,
    )
