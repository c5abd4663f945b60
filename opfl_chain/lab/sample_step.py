"""One honest training step, shared among three members, with everything an audit needs."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.calibration.replayer import shared
from opfl_chain.learning.local_step import LocalStep, StepResult
from opfl_chain.learning.model import Model, relu_units
from opfl_chain.learning.operations.table import Operations
from opfl_chain.learning.proved_client import ProvedStep
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.advice import AdviceFormat, advise
from opfl_chain.protocol.commitments import (
    Scheme,
    Subject,
    salted_words,
    shares_commitment,
    tree_commitment,
)
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.policy import PAPER_GRID, Policy
from opfl_chain.protocol.ring import FixedPoint
from opfl_chain.protocol.shares import SharedVector
from opfl_chain.rules.evidence import Observation, Replay
from opfl_chain.rules.guided import GUIDED_GRID, GuidedBoundary
from opfl_chain.rules.paper import PaperBoundary
from opfl_chain.rules.proved_rule import ProvedBoundary, ProvedRule

FRACTION_BITS = 22
LOSS_SCALE = 64
LARGEST_LIFT = 22


@dataclass(frozen=True)
class Step:
    """A step of a model with random weights on random images."""

    model: Model
    seed: int = 0
    batch_size: int = 1

    @cached_property
    def weights(self) -> dict[str, NDArray[np.float32]]:
        rng = np.random.default_rng(self.seed)
        return {
            each.name: rng.uniform(-each.bound, each.bound, each.shape).astype(np.float32)
            for each in self.model.layout
        }

    @cached_property
    def examples(self) -> NDArray[np.float32]:
        rng = np.random.default_rng(self.seed + 1)
        return rng.random((self.batch_size, *self.model.input_shape), np.float32)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        return (self.seed + np.arange(self.batch_size)) % self.model.classes

    @cached_property
    def gradient(self) -> NDArray[np.int64]:
        """The words that an honest client commits to."""

        def loss(parameters: dict[str, NDArray[np.float32]]) -> jax.Array:
            logits = self.model.logits(parameters, self.examples, Operations("jax"))
            likelihoods: jax.Array = jax.nn.log_softmax(logits)
            return -likelihoods[np.arange(self.batch_size), self.labels].mean()

        found = jax.grad(loss)(self.weights)
        names = self.model.layout.names
        named = {name: np.asarray(found[name], np.float64) for name in names}
        return FixedPoint(FRACTION_BITS, LOSS_SCALE).encode(named)

    @cached_property
    def training_input(self) -> NDArray[np.int64]:
        return self.input_format.encode(self.examples, self.labels)

    @property
    def input_format(self) -> InputFormat:
        batch = (self.batch_size,)
        shape = batch + self.model.input_shape
        return InputFormat(shape, batch, self.model.classes, FRACTION_BITS, (0.0, 1.0))

    @cached_property
    def boundary(self) -> PaperBoundary:
        """A boundary of the usual shape, wide enough for this step: it is not calibrated."""
        count = len(PAPER_GRID)
        return PaperBoundary.from_mapping(
            {
                "policy_hash": "0x" + "00" * 32,
                "spu_version": "0.9.5",
                "coordinates": self.model.layout.size,
                "grid": list(PAPER_GRID),
                "absolute": [64 * (i + 1) for i in range(count)],
                "relative": [(8 + i % 8) << 3 for i in reversed(range(count))],
                "epsilon": 2**15,
                "infinity": 2**16,
            }
        )


@dataclass(frozen=True)
class GuidedStep(Step):
    """The same step with the commitment and advice of a guided replay."""

    @cached_property
    def _result(self) -> StepResult:
        local = LocalStep(self.model)
        return local.run(self.weights, self.examples, self.labels, pre_activations=True)

    @cached_property
    def gradient(self) -> NDArray[np.int64]:
        form = FixedPoint(FRACTION_BITS, LOSS_SCALE << LARGEST_LIFT)
        return form.encode_array("gradient", self._result.gradient)

    @cached_property
    def advice_format(self) -> AdviceFormat:
        return AdviceFormat(
            relu_units(self.model, self.batch_size), LARGEST_LIFT, self.batch_size, FRACTION_BITS
        )

    @cached_property
    def advice(self) -> NDArray[np.int64]:
        masks = np.concatenate([mask.ravel() for mask in self._result.masks.values()])
        advice = advise(masks, self._result.logits, self.labels, LARGEST_LIFT)
        return self.advice_format.encode(advice)

    @cached_property
    def guided_boundary(self) -> GuidedBoundary:
        """A boundary of the usual shape, wide enough for this step: it is not calibrated."""
        return GuidedBoundary.from_mapping(
            {
                "policy_hash": "0x" + "00" * 32,
                "spu_version": "0.9.5",
                "coordinates": self.model.layout.size,
                "grid": list(GUIDED_GRID),
                "allowance_shift": 13,
                "scale_quantile": 999,
                "resolution_bits": 26,
                # A replay divides by the batch before it rounds.
                "bounds": [128 * self.batch_size] * len(GUIDED_GRID),
                "infinity": self.batch_size << 14,
                "mask_tolerance": 256,
                "ceiling_tolerance": 256,
            }
        )


@dataclass(frozen=True)
class ProvedSample(Step):
    """The same step with the commitment of a proved one."""

    @cached_property
    def policy(self) -> Policy:
        return default_policy(self.model, rule=ProvedRule(), batch_size=self.batch_size)

    @property
    def input_format(self) -> InputFormat:
        return self.policy.input_format

    @cached_property
    def gradient(self) -> NDArray[np.int64]:
        local = ProvedStep(self.policy, self.proved_boundary.tolerance)
        found = local.run(self.weights, self.examples, self.labels).result.gradient
        return self.policy.fixed_point.encode_array("gradient", found)

    @cached_property
    def proved_boundary(self) -> ProvedBoundary:
        """The boundary of a calibration whose steps are all exact: the narrowest there is."""
        exact = np.zeros(self.model.layout.size, np.int64)
        seen = Observation(self.policy, exact, Replay(exact))
        return ProvedRule().calibrate(self.policy, [seen], ProvedRule.alpha)


def tree_of(words: NDArray[np.int64]) -> tuple[bytes, SharedVector]:
    """A commitment of scheme `mpc`, and the shares of its opening."""
    salt = secrets.token_bytes(32)
    return tree_commitment(Subject.GRADIENT, salt, words), shared(salted_words(words, salt))


def packages_of(words: NDArray[np.int64]) -> tuple[bytes, list[bytes]]:
    """A commitment of scheme `shares`, and the package of each member."""
    return packed(shared(words))


def packed(vector: SharedVector) -> tuple[bytes, list[bytes]]:
    """The same for words that are shared already."""
    salts = [secrets.token_bytes(32) for _ in range(3)]
    packages = vector.packages(Scheme.SHARES, salts)
    commitment = shares_commitment(Subject.GRADIENT, packages[0].leaf_hashes)
    return commitment, [package.encode() for package in packages]
