"""How a member's process handles memory that it has freed."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Of mallopt(3)."""
_LARGEST_ARRAY = 32 << 20
"""Larger ones always come from the kernel: it is the most that glibc allows."""
_MOST_KEPT = 256 << 20


def keep_freed_memory() -> None:
    """Use it again instead of giving it back to the kernel, if the C library can be told so.

    Components of a gradient come and go by the hundred, of half a megabyte each. Memory that comes
    fresh from the kernel takes a page fault every 4 KB, which is more work than to add it up.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_ARRAY)
        mallopt(_TRIM_THRESHOLD, _MOST_KEPT)
        mallopt(_TOP_PAD, _LARGEST_ARRAY)
