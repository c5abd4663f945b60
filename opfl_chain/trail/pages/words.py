"""Words of the pages: names of participants and files, verdicts, slashes and events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opfl_chain.chain.contracts.contract import Event
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.render.html import Html, chip, code, join, table, text
from opfl_chain.trail.canonical import readable
from opfl_chain.trail.history import History, RoundHistory, Slash
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
            *((c, f"client {e.event.index}") for c, e in history.clients.items()),
            (history.terms.treasury, "treasury"),
            (history.terms.relayer, "relayer"),
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
    if round_.verdict is None:
        return chip("no majority", "warn") if round_.over else text("")
    return verdict_words(round_.verdict)


def verdict_words(verdict: Verdict) -> Html:
    passed = chip(f"{len(verdict.passed)} passed", "good")
    if not verdict.faults:
        return passed
    return join((passed, chip(f"{len(verdict.faults)} at fault", "bad")), " ")


def reason_words(reason: FaultReason) -> str:
    return {
        FaultReason.COMMITMENT_MISMATCH: "shares do not open the commitment",
        FaultReason.NOT_DELIVERED: "shares not delivered",
        FaultReason.INPUT_NOT_COMMITTED: "input not in the data set",
        FaultReason.REPLAY_OUTSIDE: "replay outside the boundary",
    }[reason]


def slash_chip(slash: Slash) -> Html:
    if slash.executed is not None:
        return chip(f"executed in block {slash.executed.block}", "bad")
    if slash.vetoed is not None:
        return chip(f"vetoed in block {slash.vetoed.block}", "good")
    return chip(f"pending, executable from block {slash.requested.event.executable_at}", "warn")


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
