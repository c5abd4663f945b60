"""Clients that prove steps, and the committee's answers to them, without a network.

Deviations are compared with their bounds as lengths: a step that uses a half has half the length.
"""

from __future__ import annotations

import math
import secrets
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.calibration.replayer import shared
from opfl_chain.lab.calibration.steps import ANY_TOLERANCE, HonestStep, TrainedStep
from opfl_chain.lab.errors import NoProofs
from opfl_chain.learning.proved_client import ProvedResult, ProvedStep
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.answers import Query, accepts
from opfl_chain.protocol.proof.closing import Tolerance
from opfl_chain.protocol.proof.prover import Prover, Usage
from opfl_chain.protocol.ring import UnsignedWords
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.registry import rule_of

Step: TypeAlias = TrainedStep | HonestStep

BOUNDS: Final = ("gradient", "residuals", "words")
SQUARED: Final = frozenset({"gradient", "residuals"})
"""Bounds on sums of squares."""


def lengths(usage: Usage) -> dict[str, float]:
    """Return the used part of every bound, of sums of squares as lengths."""
    return {
        name: math.sqrt(used) if name in SQUARED else used for name, used in usage.bounds.items()
    }


def form_of(policy: Policy) -> str:
    """Return a digest of what clients of a policy state, at its first weights and any tolerance.

    It names the proofs that a figure was measured on: figures with another one are of other proofs.
    """
    weights = initial_parameters(model_of(policy).layout, policy.seeds.model)
    return "0x" + statement_of(policy, ANY_TOLERANCE, weights).hash.hex()


class StepProver:
    """A client of one policy and tolerance."""

    def __init__(self, policy: Policy, tolerance: Tolerance) -> None:
        self.policy, self.tolerance = policy, tolerance
        self._step = ProvedStep(policy, tolerance)
        self._layout = model_of(policy).layout

    def run(self, step: Step) -> ProvedResult:
        """Run a step as a client that proves it."""
        weights = self._layout.unflatten(step.weights)
        return self._step.run(weights, step.examples, step.labels)

    def rehearse(self, step: Step, proved: ProvedResult) -> Usage:
        """Evaluate the statement in the clear, with fresh coins."""
        gradient, given = self.words(step, proved.result.gradient)
        prover = Prover(proved.statement, bytes(32), secrets.token_bytes(32), [gradient], [given])
        prover.value = proved.advised
        return prover.rehearse(secrets.token_bytes(32))

    def used(self, step: Step) -> dict[str, float]:
        """Return the used part of every bound."""
        return lengths(self.rehearse(step, self.run(step)))

    def prove(self, step: Step, proved: ProvedResult) -> bool:
        """Share, prove, answer for every component, and return the verdict."""
        gradient, given = (
            [part.view(np.uint64) for part in shared(words.view(np.int64)).components]
            for words in self.words(step, proved.result.gradient)
        )
        context = secrets.token_bytes(32)
        prover = Prover(proved.statement, context, secrets.token_bytes(32), gradient, given)
        packages = prover.prove().packages
        query = Query.of(proved.statement, context, packages[0].leaves)
        parts = {part.index: part for package in packages for part in package.held}
        return accepts(
            [query.answer(parts[i], gradient[i], given[i]) for i in range(len(gradient))]
        )

    def words(
        self, step: Step, gradient: NDArray[np.float32]
    ) -> tuple[UnsignedWords, UnsignedWords]:
        """Return the ring words of a gradient and of the input of its step."""
        committed = self.policy.fixed_point.encode_array("gradient", gradient)
        given = self.policy.input_format.encode(step.examples, step.labels)
        return committed.view(np.uint64), given.view(np.uint64)


def tolerance_of(boundary: Boundary) -> Tolerance:
    """Return the tolerance of proofs; raise if the boundary is for replays."""
    found = rule_of(boundary).tolerance(boundary)
    if found is None:
        raise NoProofs(boundary.rule)
    return found
