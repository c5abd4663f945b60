"""What attacks refuse."""

from __future__ import annotations

from collections.abc import Iterable


class AttackError(Exception):
    """The root of every error of this package."""


class UnknownAttack(AttackError, ValueError):
    def __init__(self, name: str, forms: Iterable[str]) -> None:
        super().__init__(f"there is no attack {name!r}. Attacks are: {', '.join(forms)}")


class ParameterInvalid(AttackError, ValueError):
    """The number after the colon of an attack's name is none, or out of range."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"attack {name!r}: {reason}")


class BoundaryNeeded(AttackError):
    """An attack that looks at the boundary was not told which."""

    def __init__(self, name: str) -> None:
        super().__init__(f"attack {name!r} is made for the boundary of the job, and was given none")


class StateDamaged(AttackError):
    """A kept memory that cannot be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the memory of an attack cannot be read: {reason}. Without it the attack starts anew"
        )
