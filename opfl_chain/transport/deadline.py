"""A point in time by which something must be over."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Deadline:
    """So many seconds after it was made, by a clock that is the same in a child process."""

    seconds: float
    started: float = field(default_factory=time.monotonic)

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.started + self.seconds - time.monotonic())

    @property
    def passed(self) -> bool:
        return not self.remaining
