"""Keccak-256 of secret words, equal to the chain's.

Only the step chi is not linear: it takes one conjunction of the whole state in each of 24 rounds.
"""

from __future__ import annotations

import numpy as np

from opfl_chain.circuits.arithmetic import join
from opfl_chain.circuits.boolean import BooleanCircuit, Shared, Words

RATE_WORDS = 17
DIGEST_WORDS = 4

_ROUNDS = 24
_LANES = 25
_NEXT = [5 * y + (x + 1) % 5 for y in range(5) for x in range(5)]
_SECOND = [5 * y + (x + 2) % 5 for y in range(5) for x in range(5)]


def keccak_blocks(circuit: BooleanCircuit, messages: Shared) -> Shared:
    """Hash many messages of one block: (words, count) in, digests (4, count) out.

    A message has at most 16 words, so that with its padding it fills one block of 17.
    """
    words, count = messages.shape
    if words >= RATE_WORDS:
        raise ValueError(f"a message has {words} words, at most {RATE_WORDS - 1} fit into a block")
    padding = np.zeros((_LANES - words, count), np.uint64)
    padding[0] = np.uint64(0x01)
    padding[RATE_WORDS - 1 - words] ^= np.uint64(0x8000000000000000)
    state = join(messages, circuit.public(padding))
    return permute(circuit, state)[:DIGEST_WORDS]


def permute(circuit: BooleanCircuit, state: Shared) -> Shared:
    """Apply Keccak-f[1600] to states of 25 lanes: (25, count)."""
    for constant in ROUND_CONSTANTS:
        state = state.local(_linear)
        nearest, second = state.local(lambda a: a[_NEXT]), state.local(lambda a: a[_SECOND])
        state = state ^ circuit.conjunction(circuit.invert(nearest), second)
        first = np.zeros((_LANES, 1), np.uint64)
        first[0] = constant
        state = circuit.xor_public(state, first)
    return state


def _linear(lanes: Words) -> Words:
    """Theta, rho and pi. Lane x, y is at 5 * y + x."""
    sheets = lanes.reshape(5, 5, -1)
    column = sheets[0] ^ sheets[1] ^ sheets[2] ^ sheets[3] ^ sheets[4]
    effect = np.roll(column, 1, axis=0) ^ _rotated(np.roll(column, -1, axis=0), np.uint64(1))
    mixed = (sheets ^ effect).reshape(_LANES, -1)
    return _rotated(mixed, ROTATIONS)[SOURCES]


def _rotated(words: Words, distance: Words | np.uint64) -> Words:
    back = (np.uint64(64) - distance) % np.uint64(64)
    return np.asarray((words << distance) | (words >> back), np.uint64)


def _make_rotations() -> Words:
    """Return the offsets of rho, walking the lanes as its definition does."""
    offsets = np.zeros((_LANES, 1), np.uint64)
    x, y = 1, 0
    for step in range(_ROUNDS):
        offsets[5 * y + x] = (step + 1) * (step + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return offsets


def _make_sources() -> list[int]:
    """Return, for each lane, the lane that pi moves there."""
    sources = [0] * _LANES
    for x in range(5):
        for y in range(5):
            sources[5 * ((2 * x + 3 * y) % 5) + y] = 5 * y + x
    return sources


def _make_round_constants() -> list[np.uint64]:
    """Return the constants of iota from their shift register."""
    constants, register = [], 1
    for _ in range(_ROUNDS):
        constant = 0
        for j in range(7):
            if register & 1:
                constant |= 1 << ((1 << j) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(np.uint64(constant))
    return constants


ROTATIONS = _make_rotations()
SOURCES = _make_sources()
ROUND_CONSTANTS = _make_round_constants()
