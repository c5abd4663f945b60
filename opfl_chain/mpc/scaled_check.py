"""The boundary test of a guided replay inside MPC: the verdict of `protocol.guided`, only that.

A word of which bit i says that a number is at least 2^i is its ladder. Ladders make powers of two
easy: counting bit i of all coordinates' ladders tells whether their quantile reaches 2^i, the
larger of two powers is a disjunction, and the bits of the exponent are sums of the ladder's.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from opfl_chain.mpc.arithmetic import (
    Held,
    at_most_public,
    carries,
    count_lanes,
    disjunction,
    join,
    raised,
    reaches,
    to_planes,
)
from opfl_chain.mpc.bit_planes import WORD_BITS, planes_of, words_of
from opfl_chain.mpc.boolean import BooleanCircuit, Shared, Words
from opfl_chain.mpc.profile_check import none_above, short_counts
from opfl_chain.protocol.guided import GuidedBoundary
from opfl_chain.protocol.quantiles import need

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_EXPONENT_BITS = 6


def scaled_faults(
    circuit: BooleanCircuit,
    boundary: GuidedBoundary,
    gradient: Held,
    replay: Held,
    headroom_ladder: Held,
) -> Shared:
    """Return words that are zero if the discrepancies are inside the boundary.

    All are ring components that this member holds; the ladder is one word. If there was nothing to
    learn it has all 64 rungs, and as exponents have six bits, nothing is shifted.
    """
    count = boundary.coordinates
    differences = gradient[0] - replay[0], gradient[1] - replay[1]
    sums = gradient[0] + replay[0], gradient[1] + replay[1]
    distance, total, headroom = to_planes(circuit, differences, sums, headroom_ladder)
    distance, total = _size(distance), _size(total)
    unit = _unit_ladder(circuit, boundary, total, headroom.local(lambda p: words_of(p, 1)))
    excess = _shifted_by(circuit, _excess(circuit, distance, total, boundary), unit)

    bits = max(*boundary.bounds, boundary.infinity, 1).bit_length()
    within = at_most_public(circuit, excess[:bits], [*boundary.bounds, boundary.infinity])
    needed = [*(need(p, count) for p in boundary.grid), count]
    within = join(within[:-1], none_above(circuit, within[-1:], excess[bits:]))
    return short_counts(circuit, within, needed, count)


def _size(planes: Shared) -> Shared:
    """Invert the negative ones."""
    return planes ^ planes[-1:]


def _unit_ladder(
    circuit: BooleanCircuit, boundary: GuidedBoundary, total: Shared, headroom: Shared
) -> Shared:
    """Return the ladder of a unit: the scale less the resolution, or the headroom if larger."""
    from_the_top = total[::-1]
    ladders = carries(circuit, from_the_top, circuit.invert(from_the_top))[::-1]
    counts = count_lanes(circuit, ladders.local(lambda p: words_of(p, boundary.coordinates)))
    at_least = boundary.coordinates - need(boundary.scale_quantile, boundary.coordinates) + 1
    bounds = planes_of(np.full(WORD_BITS, at_least, np.uint64), counts.shape[0])
    scale = reaches(circuit, counts, bounds)
    resolution = np.uint64(boundary.resolution_bits)
    return disjunction(circuit, scale.local(lambda w: w >> resolution), headroom)


def _excess(
    circuit: BooleanCircuit, distance: Shared, total: Shared, boundary: GuidedBoundary
) -> Shared:
    """Return the distance less the allowance, or zero if that is larger."""
    allowance = _divided(circuit, total, boundary.allowance_shift)
    differs = distance ^ allowance
    borrows = carries(
        circuit, circuit.conjunction(circuit.invert(distance), allowance), circuit.invert(differs)
    )
    difference = differs ^ raised(circuit, borrows)
    return circuit.conjunction(difference, circuit.invert(borrows[-1:]))


def _divided(circuit: BooleanCircuit, numbers: Shared, exponent: int) -> Shared:
    """Divide numbers in bit planes by a power of two."""
    nothing = circuit.public(np.zeros((exponent, *numbers.shape[1:]), np.uint64))
    return join(numbers[exponent:], nothing)


def _shifted_by(circuit: BooleanCircuit, numbers: Shared, ladder: Shared) -> Shared:
    """Divide numbers in bit planes by the power of two whose ladder is given."""
    for j in range(_EXPONENT_BITS):
        step = 1 << j
        chosen = Shared(_exponent_bit(ladder.own, step), _exponent_bit(ladder.following, step))
        moved = _divided(circuit, numbers, step)
        numbers ^= circuit.conjunction(numbers ^ moved, chosen[None])
    return numbers


def _exponent_bit(ladder: Words, step: int) -> Words:
    """Return all ones if the number of rungs has the bit `step`, else zero.

    Of the rungs number step, 2 * step, 3 * step and so on, an odd number is there if and only if
    the bit is one; so it is linear in them.
    """
    rungs = (ladder >> np.uint64(rung - 1) for rung in range(step, WORD_BITS + 1, step))
    odd: Words = reduce(np.bitwise_xor, rungs) & np.uint64(1)
    return odd * _ONES
