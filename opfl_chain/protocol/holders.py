"""Statements of a component's two holders about it, and of a referee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Word = TypeVar("Word")


@dataclass(frozen=True)
class Weighed(Generic[Word]):
    """The state of knowledge about one component."""

    word: Word | None
    """The word of the holders; None if none speaks, or if it is disputed."""
    is_confirmed: bool = False
    """Two say it: both holders, or one and the referee."""
    liars: tuple[int, ...] = ()
    """The holder, by seat, that the other holder and the referee contradict."""
    disputed: tuple[int, ...] = ()
    """The holders of whom one lies; one if the referee contradicts the only one that spoke."""


def weigh(said: Mapping[int, Word], judged: Word | None = None) -> Weighed[Word]:
    """Weigh the words of a component's holders, by seat, and of a referee if there is one.

    A referee settles what two holders dispute, and confirms what one alone says. By itself it says
    nothing: somebody who is bound to the component must say the same.
    """
    words = list(said.values())
    if not words:
        return Weighed(None)
    if all(word == words[0] for word in words):
        if len(words) == 1 and judged is not None and judged != words[0]:
            return Weighed(None, disputed=tuple(said))
        return Weighed(words[0], len(words) > 1 or judged is not None)
    if judged is None or judged not in words:
        return Weighed(None, disputed=tuple(said))
    liars = tuple(sorted(seat for seat, word in said.items() if word != judged))
    return Weighed(judged, True, liars)
