"""Heartbeats between members during a session, because SPU does not detect failed peers.

When a peer dies or is suspended, SPU waits for its next message until its time-out, in native code
that cannot be interrupted, and then names whichever member it happened to wait for. So members send
each other a pulse beside the link. If the connection ends, the peer is lost; if it is silent, the
peer is stalled. A member that gives up sends the reason before it leaves.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping

from opfl_chain.mpc.session import errors
from opfl_chain.mpc.session.greeting import Connection, wait_readable
from opfl_chain.mpc.session.ranks import Rank
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.errors import LONGEST, shown

_PULSE_SECONDS = 0.5
_LATE = 3 * _PULSE_SECONDS
"""Silence after which a peer is reported as stalled, if the session fails anyway."""
_GRACE_SECONDS = 1.0
"""Time to find out ourselves why a peer gave up, before its own reason is reported."""
_LEAVE_SECONDS = 2.0


class Heartbeat:
    """A thread that owns the connections to both peers.

    `on_failure` is called at most once, from that thread.
    """

    def __init__(
        self,
        connections: Mapping[Rank, Connection],
        addresses: tuple[str, ...],
        stall_seconds: float,
        deadline: Deadline,
        on_failure: Callable[[errors.SessionError], None],
    ) -> None:
        self.phase = "setting up"
        """Activity to report if the deadline passes."""
        self._connections = dict(connections)
        self._addresses = addresses
        self._stall_seconds = stall_seconds
        self._deadline = deadline
        self._on_failure = on_failure
        self._complaints: dict[Rank, tuple[float, str]] = {}
        self._closing = False
        self._farewell: dict[str, object] | None = None
        self._left = threading.Event()
        self._wake_in, self._wake_out = socket.socketpair()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def expect_end(self) -> None:
        """Stop treating a peer's leaving as a failure."""
        self._closing = True

    def leave(self, error: errors.MpcError | None = None) -> None:
        """Tell the peers that we leave, with the error if there is one, and end the thread."""
        self._closing = True
        self._farewell = {"left": None if error is None else str(error)[:LONGEST]}
        self._wake_out.send(b"!")
        self._left.wait(_LEAVE_SECONDS)

    def _beat(self) -> None:
        next_pulse = 0.0
        try:
            while self._farewell is None:
                if time.monotonic() >= next_pulse:
                    next_pulse = time.monotonic() + _PULSE_SECONDS
                    self._send_to_peers({"pulse": True})
                streams = [connection.stream for connection in self._connections.values()]
                pause = next_pulse - time.monotonic()
                if not self._closing:
                    pause = min(pause, self._deadline.remaining)
                wait_readable([self._wake_in, *streams], pause)
                if (error := self._check_peers()) and not self._closing:
                    self._on_failure(error)
                    return
            self._send_to_peers(self._farewell)
        except Exception as error:  # noqa: BLE001 - nothing else would notice that this thread stopped
            self._on_failure(errors.ProgramFailed("the heartbeat", repr(error)))
        finally:
            for connection in self._connections.values():
                connection.close()
            self._left.set()

    def say_why(self, error: errors.SessionError) -> None:
        """Tell the peers why this process ends. Called by `on_failure`."""
        self._send_to_peers({"left": str(error)[:LONGEST]})

    def _send_to_peers(self, header: dict[str, object]) -> None:
        for connection in self._connections.values():
            with contextlib.suppress(OSError):  # reported by the next read
                connection.send_at_once(header)

    def _check_peers(self) -> errors.SessionError | None:
        """Read all that has arrived and return the failure, if any."""
        now = time.monotonic()
        for rank, connection in list(self._connections.items()):
            try:
                for header in connection.arrived():
                    if reason := complaint_in(header):
                        self._complaints.setdefault(rank, (now, reason))
            except (ConnectionError, errors.FrameInvalid):
                connection.close()
                del self._connections[rank]
                if rank not in self._complaints:
                    return errors.PeerLost(rank, self._addresses[rank])
        # Only after reading: if we were suspended ourselves, the peers' pulses have arrived by now.
        for rank, connection in self._connections.items():
            silence = time.monotonic() - connection.heard
            impatient = self._complaints or self._deadline.passed
            if silence > (min(_LATE, self._stall_seconds) if impatient else self._stall_seconds):
                return errors.PeerStalled(rank, self._addresses[rank], silence)
        for rank, (since, reason) in self._complaints.items():
            if now - since > _GRACE_SECONDS:
                return errors.PeerFailed(rank, self._addresses[rank], reason)
        if self._deadline.passed:
            return errors.DeadlineExceeded(self._deadline.seconds, self.phase)
        return None


def complaint_in(header: Mapping[str, object]) -> str | None:
    """Return the reason why a peer gives up the session, if the message is about that."""
    reason = header.get("left")
    if not reason:
        return None
    return shown(reason) if isinstance(reason, str) else "it gave no readable reason"
