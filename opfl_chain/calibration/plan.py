"""Which steps of which training run a boundary is calibrated on, and which it is tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opfl_chain.calibration.errors import PlanInvalid


@dataclass(frozen=True)
class Plan:
    """Numbers of steps, in order. No step is both calibrated on and held out."""

    calibration: tuple[int, ...]
    held_out: tuple[int, ...]

    @classmethod
    def of(
        cls, steps: int, held_out: int = 0, training_steps: int | None = None, spread: bool = False
    ) -> Plan:
        """The first steps of a run, or steps spread over it; held out are some of the others.

        Without `training_steps` the run is as short as it can be.
        """
        length = steps + held_out if training_steps is None else training_steps
        if steps < 1:
            raise PlanInvalid(f"--steps is {steps}, a boundary needs at least 1 honest step")
        if held_out < 0:
            raise PlanInvalid(f"--held-out is {held_out}, it cannot be negative")
        if length < steps + held_out:
            raise PlanInvalid(
                f"--training-steps is {length:,}, which is less than the {steps:,} steps to"
                f" calibrate on and the {held_out:,} held out"
            )
        chosen = evenly(range(length), steps) if spread else list(range(steps))
        taken = set(chosen)
        others = [t for t in range(length) if t not in taken]
        return cls(tuple(chosen), tuple(evenly(others, held_out)))

    @property
    def kept(self) -> list[int]:
        """All steps to replay, those that the boundary is made of first."""
        return [*self.calibration, *self.held_out]


def evenly(candidates: Sequence[int], count: int) -> list[int]:
    """So many of the candidates at equal distances, the first and the last of them included."""
    gaps = max(count - 1, 1)
    return [candidates[place * (len(candidates) - 1) // gaps] for place in range(count)]
