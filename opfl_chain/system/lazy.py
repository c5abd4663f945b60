"""Modules whose names are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    module: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module; places are `module:name` in this package."""
    package = module.partition(".")[0]

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        source, _, attribute = places[name].partition(":")
        found = getattr(import_module(f"{package}.{source}"), attribute)
        setattr(sys.modules[module], name, found)
        return found

    def names() -> list[str]:
        """Return the public names, without imports that only the module itself needs."""
        return sorted([*places, *(name for name in vars(sys.modules[module]) if name[:2] == "__")])

    return get, names
