"""What a stage costs, and procedures that count what they send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opfl_chain.mpc.boolean import Transport
from opfl_chain.mpc.gates import (
    decide,
    decide_openings,
)


@dataclass(frozen=True)
class Cost:
    """What one stage took: the slowest member's seconds, and what all members sent."""

    seconds: float
    sent_bytes: int = 0
    sent_messages: int = 0
    peak_memory_bytes: int = 0


class CountingTransport:
    """Counts what a procedure sends."""

    def __init__(self, transport: Transport) -> None:
        self.rank = transport.rank
        self._transport = transport
        self.sent_bytes = 0
        self.sent_messages = 0

    def send(self, rank: int, data: bytes) -> None:
        self.sent_bytes += len(data)
        self.sent_messages += 1
        self._transport.send(rank, data)

    def receive(self, rank: int) -> bytes:
        return self._transport.receive(rank)

    def invalid(self, rank: int, reason: str) -> Exception:
        return self._transport.invalid(rank, reason)


def counted_decide(transport: Transport, **arguments: Any) -> list[Any]:
    """A procedure: `decide`, and what it sent."""
    counting = CountingTransport(transport)
    return [all(decide(counting, **arguments)), counting.sent_bytes, counting.sent_messages]


def counted_opening(transport: Transport, **arguments: Any) -> list[Any]:
    """A procedure: `decide_openings`, and what it sent."""
    counting = CountingTransport(transport)
    return [
        all(decide_openings(counting, **arguments)),
        counting.sent_bytes,
        counting.sent_messages,
    ]
