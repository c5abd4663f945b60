"""Sums inside the boolean circuit: from ring shares to bits, small integers, and counting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opfl_chain.mpc.bit_planes import WORD_BITS, planes_of, word_count
from opfl_chain.mpc.boolean import BooleanCircuit, Shared, Words

Held = tuple[Words, Words]
"""The two ring components of an array that this member holds."""


def to_boolean(circuit: BooleanCircuit, own: Words, following: Words) -> Shared:
    """Turn ring shares x = x0 + x1 + x2 into shares of the bits of x, in eight rounds.

    A Kogge-Stone adder: few rounds, and thirteen conjunctions for every bit.
    """
    total, carried = _two_summands(circuit, own, following)
    carry = shifted(carried, 1)
    propagate = total ^ carry
    generate = circuit.conjunction(total, carry)
    reach = propagate
    for distance in (1, 2, 4, 8, 16, 32):
        if distance < 32:
            pair = circuit.conjunction(
                reach[None], stack(shifted(generate, distance), shifted(reach, distance))
            )
            generate, reach = generate ^ pair[0], pair[1]
        else:
            generate ^= circuit.conjunction(reach, shifted(generate, distance))
    return propagate ^ shifted(generate, 1)


def to_planes(circuit: BooleanCircuit, *numbers: Held) -> list[Shared]:
    """Turn ring shares into shares of bit planes, all arrays together, in thirteen rounds.

    A Brent-Kung adder: five rounds more than `to_boolean`, and five conjunctions for every bit.
    """
    own, following = (
        np.concatenate([planes_of(array, WORD_BITS) for array in arrays], axis=1)
        for arrays in zip(*numbers, strict=True)
    )
    total, carried = _two_summands(circuit, own, following)
    carry = raised(circuit, carried)
    propagate = total ^ carry
    generate = circuit.conjunction(total, carry)
    bits = propagate ^ raised(circuit, carries(circuit, generate, propagate))
    ends = np.cumsum([word_count(array.size) for array, _ in numbers])
    return [bits[:, start:end] for start, end in zip([0, *ends], ends, strict=False)]


def carries(circuit: BooleanCircuit, generate: Shared, propagate: Shared) -> Shared:
    """Return what each plane carries: what it generates, or else propagates from the one below.

    Planes are combined in pairs, and the carries of all pairs give those in between (Brent, Kung).
    """
    count = generate.shape[0]
    if count == 1:
        return generate
    lower, upper = slice(0, count - 1, 2), slice(1, None, 2)
    pair = circuit.conjunction(propagate[upper][None], stack(generate[lower], propagate[lower]))
    of_pairs = carries(circuit, generate[upper] ^ pair[0], pair[1])
    between = generate[2::2]
    if between.shape[0]:
        from_below = of_pairs[: between.shape[0]]
        between ^= circuit.conjunction(propagate[2::2], from_below)
    found = Shared(np.empty_like(generate.own), np.empty_like(generate.following))
    for place, part in ((slice(1), generate[:1]), (upper, of_pairs), (slice(2, None, 2), between)):
        found.own[place], found.following[place] = part.own, part.following
    return found


def carry_out(circuit: BooleanCircuit, generate: Shared, propagate: Shared) -> Shared:
    """Return what the highest plane carries."""
    while (count := generate.shape[0]) > 1:
        lower, upper, left = slice(0, count - 1, 2), slice(1, None, 2), slice(count & ~1, None)
        pair = circuit.conjunction(propagate[upper][None], stack(generate[lower], propagate[lower]))
        generate = join(generate[upper] ^ pair[0], generate[left])
        propagate = join(pair[1], propagate[left])
    return generate[0]


def raised(circuit: BooleanCircuit, planes: Shared) -> Shared:
    """Move every plane one up, to where carries go; the highest is lost."""
    nothing = circuit.public(np.zeros((1, *planes.shape[1:]), np.uint64))
    return join(nothing, planes[:-1])


def _two_summands(circuit: BooleanCircuit, own: Words, following: Words) -> tuple[Shared, Shared]:
    """Make two summands of three, of which the second counts twice: a carry-save adder."""
    rank, after = circuit.rank, (circuit.rank + 1) % 3
    held = {rank: own, after: following}
    nothing = np.zeros_like(own)
    a, b, c = (circuit.known_to_holders(k, held.get(k, nothing)) for k in range(3))
    ab, ac = a ^ b, a ^ c
    return ab ^ c, a ^ circuit.conjunction(ab, ac)


def add_public(rank: int, held: Held, value: int) -> Held:
    """Add a public number to ring shares: it goes to the component that members 0 and 2 hold."""
    word = np.uint64(value % (1 << 64))
    own, following = held
    return own + word if rank == 0 else own, following + word if rank == 2 else following


def negative(held: Held) -> Held:
    """Negate ring shares."""
    return np.uint64(0) - held[0], np.uint64(0) - held[1]


def add_planes(circuit: BooleanCircuit, left: Shared, right: Shared) -> Shared:
    """Add numbers in bit planes (planes first); the sum has one plane more."""
    carry = circuit.conjunction(left[0], right[0])
    total = [left[0] ^ right[0]]
    for j in range(1, left.shape[0]):
        a, b = left[j] ^ carry, right[j] ^ carry
        total.append(left[j] ^ b)
        carry = carry ^ circuit.conjunction(a, b)
    return stack(*total, carry)


def increment_planes(circuit: BooleanCircuit, number: Shared, bit: Shared) -> Shared:
    """Add a bit to a number in bit planes, without growing it."""
    total = []
    carry = bit
    for j in range(number.shape[0]):
        total.append(number[j] ^ carry)
        if j + 1 < number.shape[0]:
            carry = circuit.conjunction(number[j], carry)
    return stack(*total)


def at_most_public(circuit: BooleanCircuit, number: Shared, bounds: Sequence[int]) -> Shared:
    """Compare numbers in bit planes with every bound: bit (t, lane) says number <= bounds[t]."""
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    lanes = number.shape[1:]
    largest = (1 << number.shape[0]) - 1
    reachable = [min(bound, largest) for bound in bounds]
    bound_bits = np.array(
        [[ones if bound >> j & 1 else 0 for bound in reachable] for j in range(number.shape[0])],
        np.uint64,
    ).reshape(number.shape[0], len(bounds), *(1 for _ in lanes))
    at_most = circuit.public(np.full((len(bounds), *lanes), ones))
    for j in range(number.shape[0]):
        zero = circuit.invert(number[j])[None]
        both = circuit.conjunction(zero, at_most)
        at_most = both ^ (zero ^ at_most).masked(bound_bits[j])
    return at_most


def at_most(circuit: BooleanCircuit, left: Shared, right: Shared) -> Shared:
    """Compare numbers in bit planes (planes first, shapes broadcast): left <= right."""
    shape = np.broadcast_shapes(left.shape[1:], right.shape[1:])
    result = circuit.public(np.full(shape, np.uint64(0xFFFFFFFFFFFFFFFF)))
    for j in range(left.shape[0]):
        a, b = left[j], right[j]
        same = circuit.invert(a ^ b)
        result = b ^ circuit.conjunction(b ^ result, same)
    return result


def reaches(circuit: BooleanCircuit, number: Shared, bounds: Words) -> Shared:
    """Compare numbers in bit planes with public bounds in as many planes: number >= bound.

    Few rounds where `at_most_public` has few conjunctions.
    """
    less = circuit.invert(number)
    borrow = carry_out(circuit, less.masked(bounds), circuit.xor_public(less, bounds))
    return circuit.invert(borrow)


def count_lanes(circuit: BooleanCircuit, words: Shared) -> Shared:
    """Count, for each of the 64 lanes, in how many of the words its bit is one.

    Returns the counts in bit planes of one word each. Full adders take three words of a weight to
    one of the same and one of twice the weight, for all weights in one round.
    """
    weights: list[Shared] = [words]
    while any(group.shape[0] > 2 for group in weights):
        triples = [group.shape[0] // 3 for group in weights]
        cut = [
            [group[i * n : (i + 1) * n] for i in range(3)]
            for group, n in zip(weights, triples, strict=True)
        ]
        a, b, c = (join(*(parts[i] for parts in cut)) for i in range(3))
        ab = a ^ b
        doubled = a ^ circuit.conjunction(ab, a ^ c)
        sums = ab ^ c
        next_weights: list[Shared] = []
        start = 0
        carried: Shared | None = None
        for group, n in zip(weights, triples, strict=True):
            parts = [sums[start : start + n], group[3 * n :]]
            if carried is not None:
                parts.append(carried)
            next_weights.append(join(*parts))
            carried = doubled[start : start + n]
            start += n
        if carried is not None and carried.shape[0]:
            next_weights.append(carried)
        weights = next_weights
    zero = circuit.public(np.zeros(1, np.uint64))
    # A plane more, for the last carry.
    first = stack(*(group[0:1] if group.shape[0] else zero for group in weights), zero)
    second = stack(*(group[1:2] if group.shape[0] > 1 else zero for group in weights), zero)
    propagate, generate = first ^ second, circuit.conjunction(first, second)
    return propagate ^ raised(circuit, carries(circuit, generate, propagate))


def any_word(circuit: BooleanCircuit, words: Shared) -> Shared:
    """Return the disjunction of all words, or of all planes: of the first axis."""
    while words.shape[0] > 1:
        half = words.shape[0] // 2
        folded = disjunction(circuit, words[:half], words[half : 2 * half])
        words = join(folded, words[2 * half :])
    return words


def any_bit(circuit: BooleanCircuit, words: Shared) -> Shared:
    """Return one word whose lowest bit says whether any bit of any word is one."""
    words = any_word(circuit, words)
    for distance in np.array([32, 16, 8, 4, 2, 1], np.uint64):
        moved = Shared(words.own >> distance, words.following >> distance)
        words = disjunction(circuit, words, moved)
    return words.masked(np.uint64(1))


def disjunction(circuit: BooleanCircuit, left: Shared, right: Shared) -> Shared:
    return left ^ right ^ circuit.conjunction(left, right)


def shifted(shared: Shared, distance: int) -> Shared:
    """Shift every word to the left."""
    return shared.local(lambda words: words << np.uint64(distance))


def stack(*parts: Shared) -> Shared:
    return Shared(
        np.stack([part.own for part in parts]), np.stack([part.following for part in parts])
    )


def join(*parts: Shared) -> Shared:
    return Shared(
        np.concatenate([part.own for part in parts]),
        np.concatenate([part.following for part in parts]),
    )
