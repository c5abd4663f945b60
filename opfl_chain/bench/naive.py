"""The naive version of Algorithm 1: everything inside SPU, as JAX users would write it.

The replay is `jax.grad` of the usual model and loss; every threshold is a separate comparison;
the commitment is recomputed with a Keccak of SPU's own bit operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from opfl_chain.circuits import keccak
from opfl_chain.learning.model import Model
from opfl_chain.learning.operations.table import Operations
from opfl_chain.mpc.replay.arrays import EXAMPLES, GRADIENT, TARGETS
from opfl_chain.mpc.replay.programs import Program, public, secret
from opfl_chain.rules.paper import PaperBoundary
from opfl_chain.rules.quantiles import need

LEAF_WORDS = 16


def usual_relu(values: Any) -> Any:
    return jnp.maximum(values, 0)


def replay_program(model: Model, batch: int) -> Program:
    """The gradient of the mean cross-entropy by automatic differentiation."""

    operations = Operations("jax", relu=usual_relu)

    def loss(parameters: Mapping[str, Any], examples: Any, targets: Any) -> Any:
        logits = model.logits(parameters, examples, operations)
        shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
        total = jnp.log(jnp.sum(jnp.exp(shifted), axis=-1))
        return jnp.mean(total - jnp.sum(shifted * targets, axis=-1))

    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        weights = {name: arrays[name] for name in model.layout.names}
        gradient = jax.grad(loss)(weights, arrays[EXAMPLES], arrays[TARGETS])
        flat = [gradient[name].reshape(-1) for name in model.layout.names]
        return {GRADIENT: jnp.concatenate(flat)}

    weights = [public(each.name, each.shape) for each in model.layout]
    examples = secret(EXAMPLES, (batch, *model.input_shape))
    targets = secret(TARGETS, (batch, model.classes))
    return Program(f"naive replay of {model.name}", function, (*weights, examples, targets))


def boundary_program(boundary: PaperBoundary) -> Program:
    """Both profiles and the guard, each threshold compared and counted."""
    count = boundary.coordinates
    needed = np.array([need(p, count) for p in boundary.grid], np.int64)
    absolute = np.array(boundary.absolute, np.int64)[:, None]
    factors = np.array(boundary.relative, np.int64)[:, None]

    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        gradient, replay = arrays[GRADIENT], arrays["replay"]
        distance = jnp.abs(gradient - replay)
        size = jnp.abs(gradient + replay) + 2 * boundary.epsilon
        within = jnp.sum(distance[None] <= absolute, axis=1, dtype=jnp.int64)
        relative = jnp.sum(factors * distance[None] <= size[None], axis=1, dtype=jnp.int64)
        beyond = jnp.sum(distance > boundary.infinity, dtype=jnp.int64)
        passed = jnp.all(within >= needed) & jnp.all(relative >= needed) & (beyond == 0)
        return {"verdict": passed}

    inputs = tuple(secret(name, (count,), "int64") for name in (GRADIENT, "replay"))
    return Program("naive boundary", function, inputs)


def commitment_program(count: int) -> Program:
    """The tree over all words, one layer of hashes at a time."""

    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        words = arrays["words"].astype(jnp.uint64)
        digests = _hash_all(words)
        while digests.shape[0] > keccak.DIGEST_WORDS:
            digests = _hash_all(digests)
        return {"top": digests}

    return Program("naive commitment", function, (secret("words", (count,), "int64"),))


def _hash_all(words: Any) -> Any:
    """Hash words in blocks of sixteen, and return the concatenated digests."""
    blocks = -(-words.shape[0] // LEAF_WORDS)
    missing = blocks * LEAF_WORDS - words.shape[0]
    padded = jnp.concatenate([words, jnp.zeros(missing, jnp.uint64)])
    messages = padded.reshape(blocks, LEAF_WORDS).T
    padding = np.zeros((9, blocks), np.uint64)
    padding[0] = np.uint64(0x8000000000000001)
    state = jnp.concatenate([messages, padding])
    return _permute(state)[: keccak.DIGEST_WORDS].T.reshape(-1)


def _permute(state: Any) -> Any:
    constants = jnp.asarray(np.array(keccak.ROUND_CONSTANTS, np.uint64))
    return lax.fori_loop(0, len(keccak.ROUND_CONSTANTS), _round(constants), state)


def _round(constants: Any) -> Callable[[Any, Any], Any]:
    def rotate(words: Any, distance: Any) -> Any:
        distance = jnp.broadcast_to(distance, words.shape)
        back = jnp.broadcast_to((64 - distance) % 64, words.shape)
        moved = lax.shift_right_logical(words, back)
        keep = jnp.where(distance == 0, np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF))
        return lax.shift_left(words, distance) ^ (moved & keep)

    def one(index: Any, state: Any) -> Any:
        sheets = state.reshape(5, 5, -1)
        column = sheets[0] ^ sheets[1] ^ sheets[2] ^ sheets[3] ^ sheets[4]
        one_bit = np.full((5, 1), 1, np.uint64)
        effect = jnp.roll(column, 1, axis=0) ^ rotate(jnp.roll(column, -1, axis=0), one_bit)
        mixed = rotate((sheets ^ effect).reshape(25, -1), keccak.ROTATIONS)
        lanes = jnp.concatenate([mixed[source : source + 1] for source in keccak.SOURCES])
        rows = lanes.reshape(5, 5, -1)
        inverted = jnp.roll(rows, -1, axis=1) ^ np.uint64(0xFFFFFFFFFFFFFFFF)
        chi = (rows ^ (inverted & jnp.roll(rows, -2, axis=1))).reshape(25, -1)
        first = np.zeros((25, 1), np.uint64)
        first[0] = 1
        return chi ^ (first * constants[index])

    return one
