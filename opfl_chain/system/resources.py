"""Memory and processor time of processes: allocator settings, and seconds used."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Parameters of mallopt(3)."""
_LARGEST_ARRAY = 32 << 20
"""The largest threshold that glibc allows; larger arrays always come from the kernel."""
_MOST_KEPT = 256 << 20
_USER, _SYSTEM = 11, 12
"""Positions in /proc/PID/stat after the name, which may contain spaces."""


def keep_freed_memory() -> None:
    """Reuse freed memory instead of returning it to the kernel, if the C library supports it.

    Gradient components come and go by the hundred, half a megabyte each. Memory fresh from the
    kernel takes a page fault every 4 KB, which costs more than adding the components up.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_ARRAY)
        mallopt(_TRIM_THRESHOLD, _MOST_KEPT)
        mallopt(_TOP_PAD, _LARGEST_ARRAY)


def seconds_of(process: int | None) -> float:
    """Processor seconds of a live process; zero if the system does not report them."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor seconds of this process and of its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
