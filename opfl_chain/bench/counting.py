"""Procedures of members' processes that count what they send."""

from __future__ import annotations

import time
from typing import Any

from opfl_chain.circuits.boolean import Transport
from opfl_chain.mpc.audit.judge import decide, decide_openings

Counted = tuple[bool, int, int, int]
"""The verdict on all contributions, and the bytes, messages and rounds of a member."""


class CountingTransport:
    """A transport that counts sent bytes and messages, and rounds: the waits after a message."""

    def __init__(self, transport: Transport) -> None:
        self.rank = transport.rank
        self._transport = transport
        self._has_sent = False
        self.sent_bytes = 0
        self.sent_messages = 0
        self.rounds = 0

    def send(self, rank: int, data: bytes) -> None:
        self._has_sent = True
        self.sent_bytes += len(data)
        self.sent_messages += 1
        self._transport.send(rank, data)

    def receive(self, rank: int) -> bytes:
        self.rounds += self._has_sent
        self._has_sent = False
        return self._transport.receive(rank)

    def invalid(self, rank: int, reason: str) -> Exception:
        return self._transport.invalid(rank, reason)

    def counted(self, passed: bool) -> Counted:
        return passed, self.sent_bytes, self.sent_messages, self.rounds


def counted_decide(transport: Transport, **arguments: Any) -> Counted:
    """Run the procedure `decide`, counting."""
    counting = CountingTransport(transport)
    return counting.counted(all(decide(counting, **arguments)))


def counted_opening(transport: Transport, **arguments: Any) -> Counted:
    """Run the procedure `decide_openings`, counting."""
    counting = CountingTransport(transport)
    return counting.counted(all(decide_openings(counting, **arguments)))


def cpu_seconds(transport: Transport) -> float:
    """Return the CPU time that this process has used."""
    del transport
    return time.process_time()
