"""Attacks by name, as in settings and on the command line: `reuse:5`, `label-flip`."""

from __future__ import annotations

from typing import Any, Final

from opfl_chain.adversaries import gradients
from opfl_chain.adversaries.gradients.attack import Attack, UnknownAttack
from opfl_chain.system.plugins import Registry, classes_in


def _is_attack(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Attack)


def _builtin() -> dict[str, type[Attack]]:
    """Return the attacks in the modules of this folder: a new file needs no entry elsewhere."""
    found = classes_in(gradients, lambda each: _is_attack(each) and "NAME" in vars(each))
    return {each.NAME: each for each in found}


_BUILTIN: Final = _builtin()

ATTACKS: Final[Registry[type[Attack]]] = Registry(
    "attack",
    "opfl_chain.attacks",
    _BUILTIN,
    UnknownAttack,
    _is_attack,
    lambda attack: getattr(attack, "NAME", ""),
)


def forms() -> list[str]:
    """Return the forms of all names. A plug-in is not loaded for it, so it is named without."""
    return [_BUILTIN[name].form() if name in _BUILTIN else name for name in ATTACKS.names()]


def attack_named(text: str) -> Attack:
    """Return the attack of this name; a number follows after a colon."""
    name = text.partition(":")[0]
    if name not in ATTACKS:
        raise UnknownAttack(text, forms())
    return ATTACKS[name].parse(text)
