"""Base class of context managers that close their resources."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager that closes itself on exit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what this object holds."""
