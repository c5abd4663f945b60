"""Attacks by name, as a configuration or a command line gives them: `reuse:5`, `label-flip`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from opfl_chain.attacks.adaptive import Adaptive
from opfl_chain.attacks.attack import Attack
from opfl_chain.attacks.backdoor import Backdoor
from opfl_chain.attacks.drift import Drift
from opfl_chain.attacks.errors import ParameterInvalid, UnknownAttack
from opfl_chain.attacks.free_rider import FreeRider
from opfl_chain.attacks.labels import LabelFlip, Poison
from opfl_chain.attacks.reuse import Reuse
from opfl_chain.attacks.scaling import Amplify, Reverse


@dataclass(frozen=True)
class Kind:
    """An attack that takes one number, with the value that it has if none is given."""

    letter: str
    default: float
    make: Callable[[float], Attack]
    least: float = 0.0
    most: float = math.inf
    whole: bool = False

    def read(self, name: str, text: str) -> Attack:
        wanted = f"{'a whole number' if self.whole else 'a number'} {self._range}"
        try:
            value = float(text) if text else self.default
        except ValueError:
            raise ParameterInvalid(name, f"{text!r} is no number, it must be {wanted}") from None
        within = self.least < value <= self.most and math.isfinite(value)
        if not within or (self.whole and value != int(value)):
            raise ParameterInvalid(name, f"{self.letter} is {text}, it must be {wanted}")
        return self.make(value)

    @property
    def _range(self) -> str:
        most = f" and at most {self.most:g}" if math.isfinite(self.most) else ""
        return f"above {self.least:g}{most}"


KINDS = {
    "reuse": Kind("K", 5, lambda value: Reuse(int(value)), least=1, whole=True),
    "reverse": Kind("G", 1, Reverse),
    "amplify": Kind("G", 10, Amplify),
    "free-rider": Kind("S", 0.1, FreeRider),
    "backdoor": Kind("G", 10, Backdoor),
    "adaptive": Kind("B", 1, Adaptive),
    "tail-1": Kind("B", 1, partial(Adaptive, support=0.01)),
    "tail-10": Kind("B", 1, partial(Adaptive, support=0.1)),
    "drift": Kind("P", 0.5, Drift, most=1),
}
PLAIN: dict[str, Callable[[], Attack]] = {"label-flip": LabelFlip, "poison": Poison}


def forms() -> list[str]:
    """How attacks are written; the number may be left out."""
    return [*(f"{name}[:{kind.letter}={kind.default:g}]" for name, kind in KINDS.items()), *PLAIN]


def attack_named(text: str) -> Attack:
    """The attack of this name, with its number after a colon if it takes one."""
    name, colon, number = text.partition(":")
    if name in PLAIN and not colon:
        return PLAIN[name]()
    if name in PLAIN:
        raise ParameterInvalid(text, f"{name} takes no number")
    if name not in KINDS:
        raise UnknownAttack(text, forms())
    return KINDS[name].read(text, number)
