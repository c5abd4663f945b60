"""The boundary test inside MPC: the verdict of `protocol.profile.check_replay`, and only that.

Quantiles are counted. All comparisons run on bit planes, 64 coordinates to a word, and all
thresholds at once; counting turns the planes so that a word holds all thresholds of a coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from opfl_chain.mpc.arithmetic import (
    add_planes,
    any_bit,
    at_most,
    at_most_public,
    count_lanes,
    disjunction,
    increment_planes,
    join,
    stack,
    to_boolean,
)
from opfl_chain.mpc.bit_planes import WORD_BITS, full_lanes, planes_of, words_of
from opfl_chain.mpc.boolean import BooleanCircuit, Shared, Words
from opfl_chain.protocol.boundary import FACTOR_BITS, PaperBoundary
from opfl_chain.protocol.quantiles import need

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_SIGN = np.uint64(63)


def is_inside(
    circuit: BooleanCircuit,
    boundary: PaperBoundary,
    gradient: tuple[Words, Words],
    replay: tuple[Words, Words],
) -> Shared:
    """Return a word whose lowest bit is the verdict, and whose other bits are zero.

    `gradient` and `replay` are the two ring components of each that this member holds.
    """
    count = boundary.coordinates
    differences, sums = _differences_and_sums(circuit, gradient, replay)
    distance_bits = boundary.infinity.bit_length()

    sign, folded = _fold_sign(differences)
    too_far = any_bit(circuit, folded.local(lambda w: w >> np.uint64(distance_bits)))
    distance = increment_planes(
        circuit,
        planes(folded, distance_bits, extra=1),
        planes(sign, 1)[0],
    )

    within = [at_most_public(circuit, distance, [*boundary.absolute, boundary.infinity])]
    needed = [*(need(p, count) for p in boundary.grid), count]
    factors = [factor for factor in boundary.relative if factor]
    if factors:
        needed += [
            need(p, count) for p, c in zip(boundary.grid, boundary.relative, strict=True) if c
        ]
        within.append(_within_factors(circuit, distance, sums, factors, boundary.epsilon))
    too_few = some_count_is_short(circuit, join(*within), needed, count)
    outside = disjunction(circuit, too_far, too_few)
    return circuit.xor_public(outside, np.uint64(1))


def _differences_and_sums(
    circuit: BooleanCircuit, gradient: tuple[Words, Words], replay: tuple[Words, Words]
) -> tuple[Shared, Shared]:
    """Subtract and add on the ring shares, then turn both into bits in one go."""
    own, following = (np.stack([g - m, g + m]) for g, m in zip(gradient, replay, strict=True))
    both = to_boolean(circuit, own, following)
    return both[0], both[1]


def _fold_sign(words: Shared) -> tuple[Shared, Shared]:
    """Split signed words into sign and one's complement: their size is the sum of the two."""
    sign = words.local(lambda w: w >> _SIGN)
    return sign, words ^ sign.local(lambda w: w * _ONES)


def _within_factors(
    circuit: BooleanCircuit,
    distance: Shared,
    sums: Shared,
    factors: Sequence[int],
    epsilon: int,
) -> Shared:
    """Test factor * distance <= |sum| + 2 * epsilon, for every factor."""
    bits = distance.shape[0] + max(factors).bit_length()
    sign, folded = _fold_sign(sums)
    allowance, carry = _add_public(circuit, planes(folded, bits), 2 * epsilon, planes(sign, 1)[0])
    multiples = _odd_multiples(circuit, distance, {_odd_part(factor) for factor in factors})
    scaled = stack(
        *(_widened(multiples[_odd_part(c)], bits, c // _odd_part(c)) for c in factors)
    ).local(lambda w: w.swapaxes(0, 1))
    within = at_most(circuit, scaled, allowance[:, None])
    beyond = planes(folded.local(lambda w: w >> np.uint64(bits)), WORD_BITS - bits)
    large = reduce(lambda a, b: disjunction(circuit, a, b), [carry, *_halved(circuit, beyond)])
    return disjunction(circuit, within, large[None])


def some_count_is_short(
    circuit: BooleanCircuit, within: Shared, needed: Sequence[int], count: int
) -> Shared:
    """Return a word whose lowest bit says that some threshold has too few coordinates."""
    lanes = full_lanes(count)
    turned = within.masked(lanes).local(lambda w: words_of(w, count))
    counts = count_lanes(circuit, turned)
    bits = counts.shape[0]
    bounds = planes_of(np.array(needed, np.uint64), bits)
    reached = at_most(circuit, circuit.public(bounds), counts)
    return any_bit(circuit, circuit.invert(reached).masked(full_lanes(len(needed))))


def _odd_multiples(circuit: BooleanCircuit, number: Shared, wanted: set[int]) -> dict[int, Shared]:
    """Return wanted odd multiples, below 16, of a number in bit planes."""
    width = number.shape[0] + FACTOR_BITS
    known = {1: _widened(number, width, 1)}

    def make(multiple: int) -> Shared:
        if multiple not in known:
            power = 1 << (multiple.bit_length() - 1)
            rest = make(multiple - power)
            known[multiple] = add_planes(circuit, rest, _widened(number, width, power))[:width]
        return known[multiple]

    for multiple in sorted(wanted):
        make(multiple)
    return known


def _odd_part(factor: int) -> int:
    return factor // (factor & -factor)


def _widened(number: Shared, bits: int, power: int) -> Shared:
    """Multiply by a power of two, into so many bit planes; what is above them must be zero."""
    shift = power.bit_length() - 1
    kept = min(number.shape[0], bits - shift)

    def place(w: Words) -> Words:
        placed = np.zeros((bits, *w.shape[1:]), np.uint64)
        placed[shift : shift + kept] = w[:kept]
        return placed

    return number.local(place)


def _add_public(
    circuit: BooleanCircuit, number: Shared, summand: int, bit: Shared
) -> tuple[Shared, Shared]:
    """Add a public number and a bit to a number in bit planes; return the sum and the carry."""
    total = []
    carry = bit
    for j in range(number.shape[0]):
        one = summand >> j & 1
        plane = circuit.invert(number[j]) if one else number[j]
        total.append(plane ^ carry)
        both = circuit.conjunction(number[j], carry)
        carry = number[j] ^ carry ^ both if one else both
    if summand >> number.shape[0]:
        raise ValueError(f"{summand} does not fit into {number.shape[0]} bits")
    return stack(*total), carry


def _halved(circuit: BooleanCircuit, planes_: Shared) -> list[Shared]:
    """Fold planes by disjunction until one is left; none stay none."""
    while planes_.shape[0] > 1:
        half = planes_.shape[0] // 2
        folded = disjunction(circuit, planes_[:half], planes_[half : 2 * half])
        planes_ = join(folded, planes_[2 * half :])
    return [planes_[0]] if planes_.shape[0] else []


def planes(shared: Shared, bits: int, extra: int = 0) -> Shared:
    """Return bit planes of shared words, and planes of zeros on top."""

    def turn(w: Words) -> Words:
        low = planes_of(np.ascontiguousarray(w), bits)
        return np.concatenate([low, np.zeros((extra, low.shape[1]), np.uint64)])

    return shared.local(turn)
