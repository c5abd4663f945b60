"""Words of the pages: names of participants and files, verdicts, audits and events."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from opfl_chain.chain.bindings.events import ClientAcquitted, ClientCharged
from opfl_chain.chain.bindings.types import Outcome
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.render.html import Html, chip, code, join, table, text
from opfl_chain.trail.canonical import readable
from opfl_chain.trail.history import Audit, History, RoundHistory
from opfl_chain.trail.record import Entry

_LONGEST = 66  # a hash in full


def round_file(number: int) -> str:
    return f"round-{number:04d}.html"


class Names:
    """The names of participants by address; an address may have several."""

    def __init__(self, history: History) -> None:
        self._names: dict[Address, list[str]] = {}
        for address, name in (
            *((m, f"member {i}") for i, m in enumerate(history.terms.members)),
            *((m, f"standby {i}") for i, m in enumerate(history.terms.standbys)),
            *((c, f"client {e.event.index}") for c, e in history.clients.items()),
            (history.terms.treasury, "treasury"),
            (history.created.event.creator, "creator"),
        ):
            self._names.setdefault(address, []).append(name)
        self._clients = {client: f"client {e.event.index}" for client, e in history.clients.items()}

    def of(self, address: Address | None) -> str:
        if address is None:
            return ""
        return ", ".join(self._names.get(address, [address]))

    def client(self, address: Address) -> str:
        return self._clients.get(address, address)

    def shown(self, address: Address | None) -> Html:
        """Return the name followed by the address."""
        if address is None:
            return text("")
        return Html(f"{text(self.of(address))} {code(address)}")


def outcome_chip(round_: RoundHistory) -> Html:
    if round_.finalised is not None:
        return chip("final", "good")
    if round_.voided is not None:
        return chip("void, verdict stands" if round_.decided else "void", "warn")
    return chip("decided" if round_.decided else "open")


def verdict_summary(round_: RoundHistory) -> Html:
    if round_.passed is None:
        return chip("no majority", "warn") if round_.over else text("")
    return verdict_words(round_, round_.passed)


def verdict_words(round_: RoundHistory, passed: Set[ClientIndex]) -> Html:
    """Return how many contributions on the roll passed, and how many did not."""
    shown = chip(f"{len(passed)} passed", "good")
    count = round_.roll.event.count if round_.roll is not None else 0
    if len(passed) >= count:
        return shown
    return join((shown, chip(f"{count - len(passed)} did not", "bad")), " ")


def outcome_words(outcome: Outcome) -> str:
    return {
        Outcome.NONE: "no outcome",
        Outcome.PASSED: "passed",
        Outcome.OUTSIDE: "outside the boundary",
        Outcome.UNANSWERED: "not answered in time",
    }[outcome]


def audit_chip(audit: Audit | None) -> Html:
    """Return how an audit that did not pass in its round ended."""
    if audit is None:
        return chip("not held yet", "warn")
    ended = audit.ended
    if ended is None:
        return chip("undecided", "warn")
    if isinstance(ended.event, ClientCharged):
        words = f"charged in block {ended.block}: {outcome_words(ended.event.outcome)}"
        return chip(words, "bad")
    if isinstance(ended.event, ClientAcquitted):
        return chip(f"acquitted in block {ended.block}", "good")
    return chip(f"unlocked in block {ended.block}: nobody was left to decide", "warn")


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
