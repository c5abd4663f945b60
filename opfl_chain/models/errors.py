"""What the models refuse."""

from __future__ import annotations

from collections.abc import Iterable


class ModelError(ValueError):
    """The root of every error that `opfl_chain.models` raises."""


class UnknownModel(ModelError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no model {name!r}. Known models: {', '.join(sorted(known))}.")


class LayoutMismatch(ModelError):
    """Arrays that are not the parameters of the model: a name, a shape, a length or a dtype."""
