"""Verifiers by name: those that the paper compares OPFL with, and those of plug-ins.

OPFL itself is not among them: it needs a policy and a boundary, and is named for its rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from opfl_chain import verifiers
from opfl_chain.system.plugins import Registry, classes_in
from opfl_chain.verifiers.verifier import CalibrationEmpty, Reference, Verifier, VerifierError


class VerifierUnknown(VerifierError):
    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"verifier {name!r} is unknown, known verifiers: {', '.join(known)}")


def _is_verifier(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Verifier)


def _builtin() -> dict[str, type[Verifier]]:
    """Return the verifiers in the modules of this folder: a new file needs no entry elsewhere."""
    found = classes_in(
        verifiers, lambda each: _is_verifier(each) and isinstance(vars(each).get("name"), str)
    )
    return {each.name: each for each in found}


VERIFIERS: Final[Registry[type[Verifier]]] = Registry(
    "verifier", "opfl_chain.verifiers", _builtin(), VerifierUnknown, _is_verifier
)


def baselines(honest: Sequence[Reference]) -> list[Verifier]:
    """Return all registered verifiers, with bounds from these honest steps.

    The paper takes the first hundred steps.
    """
    if not honest:
        raise CalibrationEmpty
    return [VERIFIERS[name].calibrated(honest) for name in VERIFIERS.names()]
