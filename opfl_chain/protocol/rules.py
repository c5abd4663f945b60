"""Boundaries of any rule, told apart by their ``rule``."""

from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from opfl_chain.protocol.boundary import PaperBoundary
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.guided import GuidedBoundary

Boundary: TypeAlias = PaperBoundary | GuidedBoundary

_RULES: Final[dict[str, type[PaperBoundary] | type[GuidedBoundary]]] = {
    "paper": PaperBoundary,
    "guided": GuidedBoundary,
}


def boundary_from_json(data: bytes) -> Boundary:
    """Read a boundary of any rule from its canonical bytes."""
    try:
        fields: Any = from_json(data)
    except ValueError as error:
        raise DocumentError(f"boundary: invalid JSON: {error}") from None
    rule = fields.get("rule") if isinstance(fields, dict) else None
    if not isinstance(rule, str) or rule not in _RULES:
        raise DocumentError(f"boundary rule is {rule!r}, known are {', '.join(_RULES)}")
    return _RULES[rule].from_json(data)
