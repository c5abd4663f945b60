"""The advice of a client on an audited step, which guides the replay along the client's path.

Three things make a replay in fixed point differ from training by more than rounding. A value within
rounding of 0 may be on the other side of a ReLU. The largest logit costs comparisons. And the more
certain the model already is, the smaller the gradient, until it drowns in the rounding of the ring.
So the client states on which side each value was (the masks), the largest logit of each example
(the ceilings), and by which power of two the loss can be scaled up for this step (the lift). It
shares them as it shares the input. The advice is not trusted: the replay checks all three.

A step whose labels lead by more powers of two than there are lifts has nothing to learn: its
gradient, which would be below 2^-lifts of the usual, is zero by definition, and so is its replay.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.errors import EncodingError
from opfl_chain.protocol.ring import FixedPoint, Reals, Words

LOWEST_ARGUMENT: Final = -160
"""The lowest argument of an exponential inside MPC. Far below, its polynomial grows again."""


@dataclass(frozen=True, eq=False)
class Advice:
    """The advice on one step: a bit for each ReLU of the batch, the lift, a ceiling per example."""

    masks: npt.NDArray[np.bool_]
    lift: int
    """The largest lift plus one if there is nothing to learn."""
    ceilings: Reals


@dataclass(frozen=True)
class AdviceFormat:
    """The encoding of advice: masks, then the one-hot lift, then the ceilings in fixed point."""

    units: int
    """The number of values of a batch that go into ReLUs."""
    largest_lift: int
    batch_size: int
    fraction_bits: int

    @property
    def words(self) -> int:
        """The number of words of encoded advice."""
        return self.units + self.lift_words + self.batch_size

    @property
    def lift_words(self) -> int:
        """The number of words of the lift: 0 to the largest, and one for nothing to learn."""
        return self.largest_lift + 2

    @property
    def masks(self) -> slice:
        return slice(0, self.units)

    @property
    def lifts(self) -> slice:
        return slice(self.units, self.units + self.lift_words)

    @property
    def ceilings(self) -> slice:
        return slice(self.words - self.batch_size, self.words)

    def encode(self, advice: Advice) -> Words:
        """Return the words that are shared."""
        masks = advice.masks.ravel()
        if masks.dtype != np.bool_ or masks.size != self.units:
            raise EncodingError(
                f"masks are {masks.size:,} values of {masks.dtype}, there must be"
                f" {self.units:,} booleans"
            )
        if not 0 <= advice.lift < self.lift_words:
            raise EncodingError(
                f"lift is {advice.lift}, it must be in [0, {self.largest_lift + 1}]"
            )
        if advice.ceilings.shape != (self.batch_size,):
            raise EncodingError(
                f"ceilings have shape {advice.ceilings.shape}, there must be {self.batch_size}"
            )
        words = np.zeros(self.words, "<i8")
        words[self.masks] = masks
        words[self.lifts][advice.lift] = 1
        fixed_point = FixedPoint(self.fraction_bits)
        words[self.ceilings] = fixed_point.encode_array("ceilings", advice.ceilings)
        return words


def advise(
    masks: npt.NDArray[np.bool_],
    logits: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    largest_lift: int,
) -> Advice:
    """Return the advice on a step, from its ReLUs' masks and its logits (batch, classes)."""
    values = np.asarray(logits, np.float64)
    return Advice(masks, lift_of(values, labels, largest_lift), values.max(1))


def lift_of(logits: Reals, labels: npt.NDArray[Any], largest_lift: int) -> int:
    """Return the lift of a step, or one more than the largest if there is nothing to learn.

    The lift is the lead of the label in the least certain example, in powers of two: about as many
    as softmax minus target is below one.
    """
    rows = np.arange(len(logits))
    others = logits.copy()
    others[rows, labels] = -np.inf
    lead = (logits[rows, labels] - others.max(1)).min() / np.log(2)
    return int(np.clip(np.floor(lead), 0, largest_lift + 1))
