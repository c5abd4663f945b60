"""What the pages call those who take part, and each other."""

from __future__ import annotations

from opfl_chain.protocol.identifiers import Address
from opfl_chain.trail.history import History
from opfl_chain.trail.pages.markup import Html, code, text


def round_file(number: int) -> str:
    return f"round-{number:04d}.html"


class Names:
    """Names by address; an address may have several."""

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
        """The name with the address behind it."""
        if address is None:
            return text("")
        return Html(f"{text(self.of(address))} {code(address)}")
