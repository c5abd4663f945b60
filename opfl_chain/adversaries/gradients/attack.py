"""The interface of an attack: a false gradient, or false data, of a cheating client.

A new attack is one class in one file, either in this folder or in a package of its own with an
entry point in the group `opfl_chain.attacks`.
"""

from __future__ import annotations

import io
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Self
from zipfile import BadZipFile

import numpy as np

from opfl_chain.roles.client.conduct import FinishedStep, Images, Labels, Vector

__all__ = ["Attack", "AttackState", "AttackedStep", "Images", "Labels", "Vector", "parameter"]

AttackedStep = FinishedStep
"""A client's knowledge in a round before it commits to a gradient."""
KEPT = 2
"""Rounds kept per name: the current one, which may be repeated, and the last."""


class AttackError(Exception):
    """Base class of the errors of attacks."""


class UnknownAttack(AttackError, ValueError):
    def __init__(self, name: str, forms: Iterable[str]) -> None:
        super().__init__(f"unknown attack {name!r}. Known attacks: {', '.join(forms)}")


class ParameterInvalid(AttackError, ValueError):
    """The parameter after the colon of an attack's name is not a number, or out of range."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"attack {name!r}: {reason}")


class BoundaryNeeded(AttackError):
    """An attack that uses the boundary was given none."""

    def __init__(self, name: str) -> None:
        super().__init__(f"attack {name!r} needs the boundary of the job, but was given none")


class StateDamaged(AttackError):
    """A stored attack state cannot be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the stored state of an attack cannot be read: {reason}."
            " Delete it to restart the attack"
        )


class AttackState:
    """Vectors by name and round. Only the latest rounds of each name are kept."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[int, Vector]] = {}

    def remember(self, name: str, t: int, vector: Vector) -> None:
        rounds = self._kept.setdefault(name, {})
        rounds[t] = np.array(vector, np.float32)
        for old in sorted(rounds)[:-KEPT]:
            del rounds[old]

    def latest(self, name: str, before: int) -> tuple[int, Vector] | None:
        """Return the last stored round before this one, and its vector."""
        found = max((t for t in self._kept.get(name, {}) if t < before), default=None)
        return None if found is None else (found, self._kept[name][found])

    def to_bytes(self) -> bytes:
        stream = io.BytesIO()
        vectors = {
            f"{name}@{t}": vector
            for name, rounds in self._kept.items()
            for t, vector in rounds.items()
        }
        np.savez(stream, **vectors)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> AttackState:
        state = cls()
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as stored:
                for key in stored.files:
                    name, _, t = key.rpartition("@")
                    state.remember(name, int(t), stored[key])
        except (OSError, ValueError, EOFError, BadZipFile, TypeError) as error:
            raise StateDamaged(str(error)) from error
        return state


@dataclass(frozen=True)
class Parameter:
    """The number after the colon of an attack's name: its letter, default and range."""

    letter: str
    default: float
    above: float
    most: float
    whole: bool

    def read(self, name: str, text: str) -> float:
        wanted = f"{'a whole number' if self.whole else 'a number'} {self._range}"
        try:
            value = float(text) if text else self.default
        except ValueError:
            raise ParameterInvalid(name, f"{text!r} is not a number, it must be {wanted}") from None
        within = self.above < value <= self.most and math.isfinite(value)
        if not within or (self.whole and value != int(value)):
            raise ParameterInvalid(name, f"{self.letter} is {text}, it must be {wanted}")
        return int(value) if self.whole else value

    @property
    def _range(self) -> str:
        most = f" and at most {self.most:g}" if math.isfinite(self.most) else ""
        return f"above {self.above:g}{most}"


def parameter(
    letter: str,
    default: float,
    *,
    above: float = 0.0,
    most: float = math.inf,
    whole: bool = False,
) -> Any:
    """Declare a field of an attack as the number after the colon of its name, as in `reuse:5`."""
    described = Parameter(letter, default, above, most, whole)
    return field(default=default, metadata={Parameter: described})


class Attack(ABC):
    """Attacks are deterministic: the same round and state give the same gradient.

    An attack that takes a number is a frozen dataclass, with a field declared by `parameter`.
    """

    NAME: ClassVar[str]
    """Name in settings and on the command line; of a plug-in also that of its entry point."""

    @abstractmethod
    def submit(self, step: AttackedStep, state: AttackState) -> Vector:
        """Return the gradient that the client commits to instead of the honest one."""

    def training_labels(self, labels: Labels, classes: int) -> Labels:
        """Return the labels that the client commits to before the first round.

        By default these are the true ones, so that a replay reveals the attack.
        """
        del classes
        return labels

    def cheats_in(self, t: int, first: int = 0) -> bool:
        """Return whether a client that first took part in round `first` cheats in round t."""
        del t, first
        return True

    @property
    def name(self) -> str:
        """The name with its number, as `attack_named` parses it."""
        number = self._number()
        return self.NAME if number is None else f"{self.NAME}:{getattr(self, number[0]):g}"

    @classmethod
    def form(cls) -> str:
        """Return the form of the name; the number is optional."""
        if (number := cls._number()) is None:
            return cls.NAME
        return f"{cls.NAME}[:{number[1].letter}={number[1].default:g}]"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Construct the attack of this name, with the number after its colon."""
        name, colon, value = text.partition(":")
        if (number := cls._number()) is not None:
            return cls(**{number[0]: number[1].read(text, value)})
        if colon:
            raise ParameterInvalid(text, f"{name} takes no number")
        return cls()

    @classmethod
    def _number(cls) -> tuple[str, Parameter] | None:
        """Return the field of the number, and its description."""
        if is_dataclass(cls):
            for each in fields(cls):
                if Parameter in each.metadata:
                    return each.name, each.metadata[Parameter]
        return None
