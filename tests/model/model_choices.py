"""Search: every decision of an adversary or of nature is a choice, taken in all ways or by dice."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

Option = TypeVar("Option")
Node = TypeVar("Node", bound=Hashable)
Trace = list[tuple[str, Any]]
"""The decisions that led to a state: what was decided, and how."""


Record = TypeVar("Record")


def changed(record: Record, **changes: Any) -> Record:
    """Return a copy of a dataclass with other values, as `dataclasses.replace` does.

    That takes a third of a search, as it calls the constructor with all fields of a state.
    """
    copy = object.__new__(type(record))
    fields = copy.__dict__
    fields.update(record.__dict__)
    count = len(fields)
    fields.update(changes)
    if len(fields) > count:
        raise TypeError(f"a {type(record).__name__} has no fields {list(fields)[count:]}")
    return copy


class Choose(Protocol):
    """Takes one of the options; the label says in a trace what was decided."""

    def __call__(self, label: str, options: Sequence[Option]) -> Option: ...


class Path:
    """One way through a phase, and from it the next one: together they are all."""

    def __init__(self, prefix: Sequence[int] = ()) -> None:
        self._prefix = prefix
        self._taken: list[tuple[int, int]] = []
        self.trace: Trace = []

    def __call__(self, label: str, options: Sequence[Option]) -> Option:
        at = len(self._taken)
        index = self._prefix[at] if at < len(self._prefix) else 0
        self._taken.append((index, len(options)))
        if len(options) > 1:
            self.trace.append((label, options[index]))
        return options[index]

    def following(self) -> list[int] | None:
        """Return the beginning of the next way, or None after the last one."""
        for at in reversed(range(len(self._taken))):
            index, count = self._taken[at]
            if index + 1 < count:
                return [*(taken for taken, _ in self._taken[:at]), index + 1]
        return None


class Dice:
    """One random way."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.trace: Trace = []

    def __call__(self, label: str, options: Sequence[Option]) -> Option:
        taken = self._random.choice(options)
        if len(options) > 1:
            self.trace.append((label, taken))
        return taken


@dataclass
class Found(Generic[Node]):
    """Findings of a search."""

    transitions: int = 0
    states: int = 0
    violations: dict[str, Trace] = field(default_factory=dict)
    """Each broken property, with the decisions of the first way to it."""
    last: list[Node] = field(default_factory=list)
    """The states after the last phase."""


def explore(
    start: Sequence[Node],
    phases: Sequence[Callable[[Node, Choose], Node]],
    broken: Callable[[Node], Sequence[str]],
    stop_at: str | None = None,
) -> Found[Node]:
    """Take all ways through all phases, one phase after the other, and merge equal states.

    A state in which a property is broken is not followed any further. With ``stop_at`` the search
    ends at the first violation that begins so.
    """
    found: Found[Node] = Found()
    frontier: dict[Node, Trace] = {each: [] for each in start}
    for phase in phases:
        reached: dict[Node, Trace] = {}
        for state, before in frontier.items():
            prefix: Sequence[int] | None = ()
            while prefix is not None:
                path = Path(prefix)
                after = phase(state, path)
                prefix = path.following()
                found.transitions += 1
                if after in reached:
                    continue
                violations = broken(after)
                for each in violations:
                    found.violations.setdefault(each, before + path.trace)
                    if stop_at is not None and each.startswith(stop_at):
                        return found
                if not violations:
                    reached[after] = before + path.trace
        found.states += len(reached)
        frontier = reached
    found.last = list(frontier)
    return found
