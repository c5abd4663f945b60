"""What others say, so that it can stand in our own errors."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 1000


def shown(text: str, longest: int = LONGEST) -> str:
    """A text on one line, with escapes for what cannot be printed, and cut if it is too long."""
    escaped = "".join(_escaped(character) for character in text[: longest + 1])
    return escaped if len(escaped) <= longest else f"{escaped[: longest - 3]}..."


def _escaped(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]
