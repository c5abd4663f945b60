"""Members watch each other during a session, because SPU does not.

When a peer dies or is suspended, SPU waits for its next message until its time-out, in native code
that cannot be interrupted, and then names whichever member it happened to wait for. So members send
each other a pulse beside the link. A connection that ends is a peer that is gone, at once; one that
is silent is a peer that is stalled; and a member that gives up says why before it goes.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping

from opfl_chain.mpc.connection import Connection, wait_readable
from opfl_chain.mpc.errors import (
    DeadlineExceeded,
    FrameInvalid,
    MpcError,
    PeerFailed,
    PeerLost,
    PeerStalled,
    ProgramFailed,
    SessionError,
)
from opfl_chain.mpc.ranks import Rank
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.foreign_text import LONGEST, shown

_PULSE_SECONDS = 0.5
_LATE = 3 * _PULSE_SECONDS
"""Silence that is worth mentioning at the deadline."""
_GRACE_SECONDS = 1.0
"""For finding out ourselves what made a peer give up, before we take its word for it."""
_LEAVE_SECONDS = 2.0


class Watch:
    """A thread that owns the connections to both peers.

    `on_failure` is called at most once, from that thread.
    """

    def __init__(
        self,
        connections: Mapping[Rank, Connection],
        addresses: tuple[str, ...],
        stall_seconds: float,
        deadline: Deadline,
        on_failure: Callable[[SessionError], None],
    ) -> None:
        self.phase = "setting up"
        """What to say that the session was doing when its deadline passes."""
        self._connections = dict(connections)
        self._addresses = addresses
        self._stall_seconds = stall_seconds
        self._deadline = deadline
        self._on_failure = on_failure
        self._complaints: dict[Rank, tuple[float, str]] = {}
        self._closing = False
        self._farewell: dict[str, object] | None = None
        self._left = threading.Event()
        self._alarm, self._bell = socket.socketpair()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._thread.start()

    def expect_end(self) -> None:
        """From now on it is no failure that a peer leaves."""
        self._closing = True

    def leave(self, error: MpcError | None = None) -> None:
        """Tell the peers that we go, and why if it is not the end, and end the thread."""
        self._closing = True
        self._farewell = {"left": None if error is None else str(error)[:LONGEST]}
        self._bell.send(b"!")
        self._left.wait(_LEAVE_SECONDS)

    def _watch(self) -> None:
        next_pulse = 0.0
        try:
            while self._farewell is None:
                if time.monotonic() >= next_pulse:
                    next_pulse = time.monotonic() + _PULSE_SECONDS
                    self._say({"pulse": True})
                streams = [connection.stream for connection in self._connections.values()]
                pause = next_pulse - time.monotonic()
                if not self._closing:
                    pause = min(pause, self._deadline.remaining)
                wait_readable([self._alarm, *streams], pause)
                if (error := self._judge()) and not self._closing:
                    self._on_failure(error)
                    return
            self._say(self._farewell)
        except Exception as error:  # noqa: BLE001 - nobody else would notice that we stopped
            self._on_failure(ProgramFailed("the watch", repr(error)))
        finally:
            for connection in self._connections.values():
                connection.close()
            self._left.set()

    def say_why(self, error: SessionError) -> None:
        """For `on_failure`: tell the peers before this process ends."""
        self._say({"left": str(error)[:LONGEST]})

    def _say(self, header: dict[str, object]) -> None:
        for connection in self._connections.values():
            with contextlib.suppress(OSError):  # found when we listen
                connection.send_at_once(header)

    def _judge(self) -> SessionError | None:
        """What is wrong, if anything, after reading all that has arrived."""
        now = time.monotonic()
        for rank, connection in list(self._connections.items()):
            try:
                for header in connection.arrived():
                    if reason := complaint_in(header):
                        self._complaints.setdefault(rank, (now, reason))
            except (ConnectionError, FrameInvalid):
                connection.close()
                del self._connections[rank]
                if rank not in self._complaints:
                    return PeerLost(rank, self._addresses[rank])
        # After all is read: had we been suspended ourselves, their pulses would be here.
        for rank, connection in self._connections.items():
            silence = time.monotonic() - connection.heard
            impatient = self._complaints or self._deadline.passed
            if silence > (min(_LATE, self._stall_seconds) if impatient else self._stall_seconds):
                return PeerStalled(rank, self._addresses[rank], silence)
        for rank, (since, reason) in self._complaints.items():
            if now - since > _GRACE_SECONDS:
                return PeerFailed(rank, self._addresses[rank], reason)
        if self._deadline.passed:
            return DeadlineExceeded(self._deadline.seconds, self.phase)
        return None


def complaint_in(header: Mapping[str, object]) -> str | None:
    """Why a peer gives the session up, if that is what it says."""
    reason = header.get("left")
    if not reason:
        return None
    return shown(reason) if isinstance(reason, str) else "it does not say why in words"
