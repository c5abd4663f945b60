"""How long to leave alone what has failed: longer every time, and each thing for itself."""

from __future__ import annotations

import time
from collections.abc import Callable


class Patience:
    """For one thread. What succeeded, or never failed, is due at once."""

    def __init__(
        self, first: float = 0.25, last: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._first = first
        self._last = last
        self._clock = clock
        self._pauses: dict[str, tuple[float, float]] = {}
        """How long the next pause is, and when the present one ends."""

    def is_due(self, what: str) -> bool:
        return what not in self._pauses or self._clock() >= self._pauses[what][1]

    def failed(self, what: str) -> None:
        pause = self._pauses[what][0] if what in self._pauses else self._first
        self._pauses[what] = min(2 * pause, self._last), self._clock() + pause

    def succeeded(self, what: str) -> None:
        self._pauses.pop(what, None)
