"""What the link between members costs, whatever runs over it."""

from __future__ import annotations

import time

from opfl_chain.mpc.runtime import Runtime


def round_trips(runtime: Runtime, count: int, size: int) -> list[float]:
    """Seconds of each of `count` exchanges of `size` bytes with both peers."""
    data, seconds = bytes(size), []
    for _ in range(count):
        started = time.perf_counter()
        runtime.exchange(data)
        seconds.append(time.perf_counter() - started)
    return seconds
