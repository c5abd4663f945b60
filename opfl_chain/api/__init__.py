"""The functions of the public API, one module each; `opfl_chain` re-exports them."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Progress callback: the activity, the parts done, and the parts in total."""


def silent(activity: str, done: int, total: int) -> None:
    """Report progress to nobody."""
    del activity, done, total
