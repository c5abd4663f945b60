"""Subjects of rules: evidence inside MPC, observations in the clear, and profiles of observations.

Evidence holds one member's components. An observation pairs a committed gradient with its opened
replay, for calibration and evaluation. A profile keeps the few numbers that decide for every
boundary of a rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.circuits.arithmetic import Held
from opfl_chain.protocol.advice import AdviceFormat, lift_of
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring import Reals, Words


@dataclass(frozen=True)
class ReplayOutputs:
    """The outputs of a replay; those that check the advice are absent from a plain replay."""

    gradient: Held
    pre_activations: Held | None = None
    arguments: Held | None = None
    totals: Held | None = None


@dataclass(frozen=True)
class Evidence:
    """A committed gradient, the input of its step, and the replay of that step."""

    gradient: Held
    training_input: Held
    advice: Held | None
    replay: ReplayOutputs


@dataclass(frozen=True)
class Forms:
    """The encodings of input and advice."""

    feature_words: int
    """The words of the training input that hold features; labels follow."""
    advice: AdviceFormat | None = None


@dataclass(frozen=True, eq=False)
class Replayed:
    """The result of a replay, as ring words of the replay's own scale."""

    gradient: Words
    lift: int = 0
    wrong_side: int = 0
    """The largest distance of a value beyond zero on the side its mask excludes, in quanta."""
    activation_error: int = 0
    """The largest difference of a ReLU input from the client's, in quanta."""
    over_ceiling: int = 0
    """The largest excess of a logit over its ceiling, or of one over a sum of exponentials."""


@dataclass(frozen=True, eq=False)
class Replay:
    """A replay as words of the committed scale. Never opened in a job."""

    words: Words
    headroom: int | None = 0
    """The number of lifts that the step left unused, None if there was nothing to learn."""
    wrong_side: int = 0
    activation_error: int = 0
    over_ceiling: int = 0
    """The errors of the client's advice, as in :class:`Replayed`; zero if there is no advice."""

    @classmethod
    def of(cls, policy: Policy, replayed: Replayed) -> Replay:
        """Raise a replay to the committed scale."""
        unused = policy.largest_lift - replayed.lift
        shift = unused if policy.replay.lifts_words else 0
        return cls(
            replayed.gradient << shift if unused >= 0 else np.zeros_like(replayed.gradient),
            unused if unused >= 0 else None,
            replayed.wrong_side,
            replayed.activation_error,
            replayed.over_ceiling,
        )


@dataclass(frozen=True, eq=False)
class Observation:
    """A committed gradient and its replay, both as words of the committed scale."""

    policy: Policy
    gradient: Words
    replay: Replay

    @classmethod
    def of(cls, policy: Policy, gradient: NDArray[np.float32], replayed: Replayed) -> Observation:
        """Encode a gradient as a client commits to it, and pair it with a replay."""
        words = policy.fixed_point.encode_array("gradient", gradient)
        return cls(policy, words, Replay.of(policy, replayed))


def headroom_of(
    policy: Policy, logits: NDArray[np.float32], labels: NDArray[np.int64]
) -> int | None:
    """Return the number of lifts that a step leaves unused, None if it has nothing to learn."""
    unused = policy.largest_lift - lift_of(logits.astype(np.float64), labels, policy.largest_lift)
    return unused if unused >= 0 else None


@dataclass(frozen=True, eq=False)
class Profile(ABC):
    """The part of an observation that the lab keeps."""

    zero: bool
    """True if the client commits to zero, because there is nothing to learn."""
    wrong_side: int
    """The error of the masks in the client's advice, in quanta."""

    @abstractmethod
    def causes(self, boundary: Any) -> list[str]:
        """Return the same causes as the rule does for the observation."""


@dataclass(frozen=True, eq=False)
class WholeObservation(Profile):
    """The profile of a rule without a reduction of its own: it keeps everything."""

    observation: Observation
    judge: Callable[[Any, Observation], list[str]]

    def causes(self, boundary: Any) -> list[str]:
        return self.judge(boundary, self.observation)


@dataclass(frozen=True, eq=False)
class QuantilePanel:
    """A plot of quantiles: those of several steps, and their bounds."""

    title: str
    steps: Reals
    """One row for each step, one column for each quantile of the policy's grid."""
    bounds: Reals | None
    """The bound of each quantile, if the rule has any."""
    guard: float | None
    """The bound of the largest discrepancy, if it is drawn in the same unit."""
    resolution: float
    """The smallest value above zero that is told apart from it."""


@dataclass(frozen=True)
class RunSeries:
    """A plot of one number of every step over a training run, and its bound."""

    title: str
    unit: str
    steps: Sequence[float]
    bound: float
