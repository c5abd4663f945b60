"""Events as the chain has them, in a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opfl_chain.chain.contract import Event
from opfl_chain.trail.canonical import readable
from opfl_chain.trail.pages.markup import Html, code, join, table, text
from opfl_chain.trail.record import Entry

_LONGEST = 66  # a hash in full


def event_table(entries: Iterable[Entry[Event]]) -> Html:
    return table(
        (">block", ">log", "event", "arguments", "transaction"),
        [
            (
                text(entry.block),
                text(entry.log_index),
                text(entry.name),
                _arguments(readable(entry.event)),
                code(entry.transaction),
            )
            for entry in entries
        ],
    )


def _arguments(arguments: dict[str, Any]) -> Html:
    return join((Html(f"{text(name)} {_value(value)}") for name, value in arguments.items()), " · ")


def _value(value: Any) -> Html:
    if isinstance(value, dict):
        return Html(f"({_arguments(value)})")
    if isinstance(value, list):
        return join(map(_value, value), ", ")
    shown = str(value)
    return code(shown, whole=len(shown) < _LONGEST and not shown.startswith("0x"))
