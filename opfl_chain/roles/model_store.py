"""The models of a job, each derived from the aggregate of a final round.

The aggregates determine all models. Nobody has to be trusted, because the chain holds the hash of
every aggregate and of every model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from opfl_chain.chain.rpc import tohex
from opfl_chain.learning.errors import UpdateNotFinite
from opfl_chain.learning.layout import ParameterLayout
from opfl_chain.learning.optimizers import (
    ModelOptimizer,
    OptimizerState,
    state_from_bytes,
    state_to_bytes,
)
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.protocol.aggregate import (
    NOTHING,
    aggregate_hash,
    mean_gradient,
    weights_hash,
)
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.settings import JobUnusable, ModelMissing
from opfl_chain.roles.state import State
from opfl_chain.roles.view.records import RoundView
from opfl_chain.roles.view.view import ChainView

Weights = NDArray[np.float32]
FetchAggregate = Callable[[bytes], Words]
"""Fetches the words of an aggregate by its hash. Raises if nobody has it."""

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS models (
    hash BLOB PRIMARY KEY, updates INTEGER, weights BLOB, optimizer BLOB
);
CREATE TABLE IF NOT EXISTS aggregates (hash BLOB PRIMARY KEY, words BLOB);
CREATE TABLE IF NOT EXISTS followed (round INTEGER PRIMARY KEY, model BLOB);
"""


class Models:
    """Models in a daemon's state. Safe to share between threads."""

    def __init__(self, view: ChainView, state: State) -> None:
        self._view = view
        self._state = state
        self._policy = view.job.policy
        self._fewest = view.job.terms.fewest_contributions
        self._optimizer = ModelOptimizer.of_policy(self._policy)
        self._begin()

    @property
    def layout(self) -> ParameterLayout:
        return self._optimizer.layout

    def weights(self, model_hash: bytes) -> Weights | None:
        """Weights of a model, flat and in canonical order."""
        row = self._state.one("SELECT weights FROM models WHERE hash = ?", model_hash)
        return np.frombuffer(row[0], "<f4").astype(np.float32) if row else None

    def required(self, model_hash: bytes) -> Weights:
        if (weights := self.weights(model_hash)) is None:
            raise ModelMissing(f"model {tohex(model_hash)} is not here yet")
        return weights

    def aggregate(self, wanted: bytes) -> bytes | None:
        row = self._state.one("SELECT words FROM aggregates WHERE hash = ?", wanted)
        return row[0] if row else None

    def propose(self, round_: RoundView, words: Words, contributions: int) -> tuple[bytes, bytes]:
        """Apply an aggregate to the model of a round; return the hashes of aggregate and result."""
        weights = self.required(round_.model_hash)
        row = self._state.one(
            "SELECT updates, optimizer FROM models WHERE hash = ?", round_.model_hash
        )
        updates, optimizer = row[0], state_from_bytes(row[1])
        if contributions >= self._fewest:
            gradient = mean_gradient(words, contributions, self._policy.fixed_point)
            with contextlib.suppress(UpdateNotFinite):  # then the model stays as it is
                optimizer, weights = self._optimizer.update(optimizer, weights, gradient)
            updates += 1
        else:
            words = NOTHING
        with self._state.transaction():
            agreed = self._keep(words)
            model = self._put(weights, updates, optimizer)
        return agreed, model

    def follow(self, fetch: FetchAggregate) -> None:
        """Derive the models of all rounds that are final, and check each against the chain."""
        for round_ in self._view.finalised_rounds():
            wanted, expected = round_.aggregate_hash, round_.next_model_hash
            if wanted is None or expected is None:
                raise JobUnusable(f"round {round_.number} is final but has no hashes")
            followed = self._state.one("SELECT model FROM followed WHERE round = ?", round_.number)
            if followed is not None and followed[0] == expected:
                continue
            if self.weights(expected) is None:
                self._derive(round_, wanted, expected, fetch)
            self._state.write(
                "INSERT OR REPLACE INTO followed VALUES (?, ?)", round_.number, expected
            )

    def _derive(
        self, round_: RoundView, wanted: bytes, expected: bytes, fetch: FetchAggregate
    ) -> None:
        passes = self._view.decided_passes(round_)
        contributions = len(Verdict.decode(passes).passed) if passes else 0
        stored = self.aggregate(wanted)
        words = np.frombuffer(stored, "<i8") if stored is not None else fetch(wanted)
        if aggregate_hash(words) != wanted:
            raise ModelMissing(f"the words received as aggregate {tohex(wanted)} have another hash")
        if contributions >= self._fewest and words.size != self.layout.trainable.size:
            raise JobUnusable(
                f"the aggregate of round {round_.number} has {words.size:,} words on chain, but the"
                f" model trains {self.layout.trainable.size:,} parameters: two members signed a"
                " false result"
            )
        _, model = self.propose(round_, words, contributions)
        if model != expected:
            raise JobUnusable(
                f"round {round_.number} ended with model {tohex(expected)} on chain, but its"
                f" aggregate gives {tohex(model)}: two members signed a false result"
            )

    def _begin(self) -> None:
        """Derive the first model from the policy's seed, and check it against the terms."""
        weights = self.layout.flatten(initial_parameters(self.layout, self._policy.seeds.model))
        stated = self._view.job.terms.model_hash
        if weights_hash(weights) != stated:
            raise JobUnusable(
                f"job {self._view.job.id} starts from model {tohex(stated)}, but its policy"
                f" makes {tohex(weights_hash(weights))}"
            )
        if self.weights(stated) is None:
            self._put(weights, 0, self._optimizer.start(weights))

    def _put(self, weights: Weights, updates: int, optimizer: OptimizerState[Weights]) -> bytes:
        digest = weights_hash(weights)
        self._state.write(
            "INSERT OR IGNORE INTO models VALUES (?, ?, ?, ?)",
            digest,
            updates,
            weights.astype("<f4").tobytes(),
            state_to_bytes(optimizer),
        )
        return digest

    def _keep(self, words: Words) -> bytes:
        digest = aggregate_hash(words)
        self._state.write(
            "INSERT OR IGNORE INTO aggregates VALUES (?, ?)", digest, words.astype("<i8").tobytes()
        )
        return digest
