"""The gradient that the advice on a proved step implies, which stands for a replay.

A proved step is not replayed: its advice, in exact integers, implies a gradient, which the
committed one is compared with. The lab computes it in the clear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.calibration.steps import ANY_TOLERANCE, HonestStep
from opfl_chain.learning.proved_client import ProvedResult, ProvedStep
from opfl_chain.learning.registry import model_of
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.evaluation import gradient_value
from opfl_chain.protocol.proof.wires import Wire
from opfl_chain.protocol.ring import Reals
from opfl_chain.rules.evidence import Replayed


class StepReplayer(Protocol):
    """Replays steps, or computes what stands for their replays."""

    def replay_all(self, steps: Iterable[HonestStep]) -> Iterator[Replayed]:
        """Replay steps in order."""


class ImpliedReplayer:
    """Returns the gradients that the advice on steps implies."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._layout = model_of(policy).layout
        self._step = ProvedStep(policy, ANY_TOLERANCE)

    def replay_all(self, steps: Iterable[HonestStep]) -> Iterator[Replayed]:
        for step in steps:
            weights = self._layout.unflatten(step.weights)
            yield implied(self._policy, self._step.run(weights, step.examples, step.labels))


def implied(policy: Policy, proved: ProvedResult) -> Replayed:
    """Return the gradient that the advice on a step implies, in words of the committed scale."""
    words = policy.fixed_point.encode_array("gradient", implied_gradient(policy, proved))
    return Replayed(words, lift_in(proved))


def implied_gradient(policy: Policy, proved: ProvedResult) -> Reals:
    """Return the gradient that the advice on a step implies."""
    raised = gradient_value(proved.statement, proved.advised).to_floats()
    bits = proved.statement.gradient_bits + lift_in(proved)
    return raised * (2.0**-bits / policy.data.batch_size)


def lift_in(proved: ProvedResult) -> int:
    """Return the power of two by which the advice scales errors up."""
    return int(advised_floats(proved, "loss.lift").argmax())


def advised_floats(proved: ProvedResult, name: str) -> NDArray[np.float64]:
    """Return the integers of a group of words, as floats."""
    return proved.advised(words_named(proved, name)).to_floats()


def words_named(proved: ProvedResult, name: str) -> Wire:
    """Return a group of words of the statement."""
    return next(group.wire for group in proved.statement.words if group.name == name)
