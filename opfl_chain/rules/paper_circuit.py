"""The boundary test of the paper's rule inside MPC. Yields the verdict of `check_replay` only.

Quantiles are tested by counting. Comparisons run on bit planes, 64 coordinates to a word, with all
thresholds at once; for counting, planes are transposed to words of all thresholds per coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opfl_chain.circuits import arithmetic
from opfl_chain.circuits.bit_planes import full_lanes, planes_of, words_of
from opfl_chain.circuits.boolean import BooleanCircuit, Shared, Words
from opfl_chain.rules.evidence import Evidence, Forms
from opfl_chain.rules.paper import FACTOR_BITS, PaperBoundary
from opfl_chain.rules.quantiles import need


def paper_faults(
    circuit: BooleanCircuit, boundary: PaperBoundary, evidence: Evidence, forms: Forms
) -> Shared:
    """Return words that are zero if and only if the replay is within the boundary."""
    del forms
    return profile_faults(circuit, boundary, evidence.gradient, evidence.replay.gradient)


def profile_faults(
    circuit: BooleanCircuit,
    boundary: PaperBoundary,
    gradient: arithmetic.Held,
    replay: arithmetic.Held,
) -> Shared:
    """Return words that are zero if the discrepancies are inside the boundary."""
    count = boundary.coordinates
    differences, sums = arithmetic.to_planes(
        circuit,
        (gradient[0] - replay[0], gradient[1] - replay[1]),
        (gradient[0] + replay[0], gradient[1] + replay[1]),
    )
    distance_bits = boundary.infinity.bit_length()

    sign, folded = _fold_sign(differences)
    distance = arithmetic.increment_planes(
        circuit, _widened(folded[:distance_bits], distance_bits + 1, 1), sign
    )

    small = arithmetic.at_most_public(circuit, distance, [*boundary.absolute, boundary.infinity])
    within = [small[:-1], none_above(circuit, small[-1:], folded[distance_bits:])]
    needed = [*(need(p, count) for p in boundary.grid), count]
    factors = [factor for factor in boundary.relative if factor]
    if factors:
        needed += [
            need(p, count) for p, c in zip(boundary.grid, boundary.relative, strict=True) if c
        ]
        within.append(_within_factors(circuit, distance, sums, factors, boundary.epsilon))
    return short_counts(circuit, arithmetic.join(*within), needed, count)


def none_above(circuit: BooleanCircuit, within: Shared, planes: Shared) -> Shared:
    """Exclude numbers that have a bit in the planes above those that were compared."""
    return circuit.conjunction(within, circuit.invert(arithmetic.any_word(circuit, planes)))


def _fold_sign(planes: Shared) -> tuple[Shared, Shared]:
    """Split signed numbers into sign and one's complement; the sum of the two is their size."""
    return planes[-1], planes ^ planes[-1:]


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
    allowance, carry = _add_public(circuit, folded[:bits], 2 * epsilon, sign)
    multiples = _odd_multiples(circuit, distance, {_odd_part(factor) for factor in factors})
    scaled = arithmetic.stack(
        *(_widened(multiples[_odd_part(c)], bits, c // _odd_part(c)) for c in factors)
    ).local(lambda w: w.swapaxes(0, 1))
    within = arithmetic.at_most(circuit, scaled, allowance[:, None])
    large = arithmetic.any_word(circuit, arithmetic.join(carry[None], folded[bits:]))
    return arithmetic.disjunction(circuit, within, large)


def short_counts(
    circuit: BooleanCircuit, within: Shared, needed: Sequence[int], count: int
) -> Shared:
    """Return a word whose bit t says that threshold t has too few coordinates."""
    lanes = full_lanes(count)
    turned = within.masked(lanes).local(lambda w: words_of(w, count))
    counts = arithmetic.count_lanes(circuit, turned)
    bounds = planes_of(np.array(needed, np.uint64), counts.shape[0])
    reached = arithmetic.reaches(circuit, counts, bounds)
    return circuit.invert(reached).masked(full_lanes(len(needed)))


def _odd_multiples(circuit: BooleanCircuit, number: Shared, wanted: set[int]) -> dict[int, Shared]:
    """Return odd multiples, below 16, of a number in bit planes."""
    width = number.shape[0] + FACTOR_BITS
    known = {1: _widened(number, width, 1)}

    def make(multiple: int) -> Shared:
        if multiple not in known:
            power = 1 << (multiple.bit_length() - 1)
            rest = make(multiple - power)
            known[multiple] = arithmetic.add_planes(circuit, rest, _widened(number, width, power))[
                :width
            ]
        return known[multiple]

    for multiple in sorted(wanted):
        make(multiple)
    return known


def _odd_part(factor: int) -> int:
    return factor // (factor & -factor)


def _widened(number: Shared, bits: int, power: int) -> Shared:
    """Multiply by a power of two, into `bits` planes; the planes above must be zero."""
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
    return arithmetic.stack(*total), carry
