"""The one interface of verifiers, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from opfl_chain.protocol.ring import Words

Vector = NDArray[np.float32]
Penalty = Callable[[torch.Tensor], torch.Tensor]
"""From submitted gradients, one a row, to how far each is from being accepted: 0 if it is."""


@dataclass(frozen=True, eq=False)
class Replay:
    """What the committee computed of a step: words of the committed scale, never opened in use."""

    words: Words
    headroom: int | None
    """How many lifts the step did not use, None if there was nothing to learn."""
    wrong_side: int = 0
    over_ceiling: int = 0
    """How far the honest client's advice was off, in quanta."""


@dataclass(frozen=True, eq=False)
class Reference:
    """All that verifiers hold against a gradient submitted in one step."""

    gradient: Vector
    """The honest one. Verifiers do not have it; attackers build on it."""
    public: Vector | None = None
    """Of public examples at the same weights: what EIFFeL compares with."""
    replays: Mapping[str, Replay] = field(default_factory=dict)
    """By rule: what OPFL compares with."""


class Verifier(Protocol):
    @property
    def name(self) -> str: ...

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        """The probability that a gradient is accepted; 0 or 1 unless the rule draws lots."""

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        """What an adaptive attacker descends on, for one submission to each of the references.

        `wanted` says how much the attacker wants to move each coordinate, relative to the others.
        """
