"""Exponential backoff, separately for each name."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Backoff:
    """Pauses for use in one thread. A name that succeeded, or never failed, is due at once."""

    def __init__(
        self,
        first: float = 0.25,
        last: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        alarm: Callable[[float], None] = lambda when: None,
        *,
        aligned: bool = False,
    ) -> None:
        """`alarm` is told when a pause ends that something waits for.

        Aligned pauses end at multiples of their length, so that those of many end at once.
        """
        self._first = first
        self._last = last
        self._clock = clock
        self._alarm = alarm
        self._aligned = aligned
        self._pauses: dict[str, tuple[float, float]] = {}
        """Length of the next pause, and end of the current one."""

    def is_due(self, what: str) -> bool:
        if what not in self._pauses or self._clock() >= self._pauses[what][1]:
            return True
        self._alarm(self._pauses[what][1])
        return False

    def failed(self, what: str) -> None:
        pause = self._pauses[what][0] if what in self._pauses else self._first
        end = self._clock() + pause
        if self._aligned:
            end = math.ceil(end / pause) * pause
        self._pauses[what] = min(2 * pause, self._last), end
        self._alarm(end)

    def succeeded(self, what: str) -> None:
        self._pauses.pop(what, None)
