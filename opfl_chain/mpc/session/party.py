"""A member's handle of its SPU process, and of the sessions that it runs there."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from opfl_chain.mpc.session import errors
from opfl_chain.mpc.session.codec import decode_error, decode_value, encode_value, typed_result
from opfl_chain.mpc.session.executable import Executable
from opfl_chain.mpc.session.messages import HUGE, Buffer, Frame, receive_frame, send_frame
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import MEMBERS, Rank
from opfl_chain.mpc.session.requests import Call, Join, Leave, Request, Warm
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.mpc.session.session import P, Procedure, RunResult, SessionInput, T, name_of
from opfl_chain.mpc.session.shares import Share, Words
from opfl_chain.system.closing import Closing
from opfl_chain.transport.deadline import Deadline

_TAIL_LINES = 15
_END_SECONDS = 1.0
_TAKEOVER_PAUSE_SECONDS = 0.1
PROGRAM = "opfl_chain.mpc.session.process"
"""The module that the process of a member runs."""
JOIN_SECONDS = 30.0
STALL_SECONDS = 10.0
LEAVE_SECONDS = 5.0
"""Time limit for leaving, so that a peer that dies at the very end does not hold us up."""
_MARGIN = 0.1
_MAX_MARGIN_SECONDS = 0.5
"""Margin by which the child's deadline is earlier, so that it can report who was late."""


class PartyChild:
    """The child process. The constructor starts it without waiting until it is up."""

    def __init__(self, rank: Rank, program: str) -> None:
        """`program` is the module that it runs."""
        self._rank = rank
        self._stream, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `kill`
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", program, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
                env=_environment(),
            )
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def request(self, request: Request, deadline: Deadline, phase: str) -> Any:
        """Return the result of a request, or raise its error. The child is unusable after that."""
        blobs: list[Buffer] = []
        header = encode_value(request, blobs)
        try:
            # If the child ended with an error, its last reply can still be read.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                send_frame(self._stream, Frame(header, tuple(blobs)), deadline)
            reply = receive_frame(self._stream, deadline, HUGE)
        except TimeoutError:
            raise errors.DeadlineExceeded(deadline.seconds, phase) from None
        except OSError:
            raise errors.RuntimeDied(self._rank, self._ending(), self._log_tail()) from None
        return result_in(reply)

    def interrupt(self) -> None:
        """Make a request that is under way in another thread fail."""
        self._process.kill()

    def kill(self) -> None:
        """End the process, whatever state it is in."""
        self._stream.close()
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _ending(self) -> str:
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"exited with code {code}"

    def _log_tail(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]
        return "\n".join(f"  {line}" for line in lines) or "  (empty)"


def result_in(reply: Frame) -> Any:
    """Return the result in a reply, or raise its error."""
    match reply.header:
        case {"error": error}:
            raise decode_error(error)
        case {"result": result}:
            return decode_value(result, reply.blobs)
    raise errors.FrameInvalid("the reply has neither a result nor an error")


def _environment() -> dict[str, str]:
    """Limit the threads of matrix products to a third of the cores, one third per member.

    SPU uses up to four threads per product, which wait for each other in busy loops: with more
    threads than cores a product of 0.2 ms takes 50 ms.
    """
    limit = max(1, (os.cpu_count() or 1) // MEMBERS)
    return {"OMP_THREAD_LIMIT": str(limit), **os.environ}


def _take_over(config: PartyConfig, deadline: Deadline) -> socket.socket:
    """Reserve the address of a party, and wait for it until the deadline."""
    while True:
        try:
            return config.reserve_address()
        except errors.AddressTaken:
            if deadline.passed:
                raise
            time.sleep(_TAKEOVER_PAUSE_SECONDS)


class Party(Closing):
    """One member. Its child process starts at once, to be warm when it is needed."""

    def __init__(
        self, config: PartyConfig, *, takeover_seconds: float = 0.0, program: str = PROGRAM
    ) -> None:
        """`takeover_seconds` is how long a predecessor's process may still hold our address.

        A member that was killed leaves its SPU process behind, which ends a moment later.
        """
        self.config = config
        self._program = program
        self._reservation = _take_over(config, Deadline(takeover_seconds))
        self._child: PartyChild | None = PartyChild(config.rank, program)
        self._session: PartySession | None = None

    @property
    def rank(self) -> Rank:
        return self.config.rank

    @property
    def pid(self) -> int | None:
        """Process id of the child."""
        return self._child.pid if self._child else None

    def wait_until_warm(self, seconds: float = 120.0) -> None:
        """Wait until the child process has started, so that the first session need not wait."""
        self._replace_dead_child()
        self.request(Warm(), Deadline(seconds), "its process was starting")

    def session(
        self,
        audit: str,
        *,
        seconds: float,
        join_seconds: float = JOIN_SECONDS,
        stall_seconds: float = STALL_SECONDS,
    ) -> PartySession:
        """Meet the peers and connect. All members pass the same `audit`, a new one each time.

        The whole session must end within `seconds`. A peer must join within `join_seconds`, and
        must not be silent for `stall_seconds`; pulses are sent twice a second.
        """
        if self._session is not None:
            raise errors.SessionClosed(
                f"audit {self._session.audit!r} is still under way and must be closed first"
            )
        self._replace_dead_child()
        session = PartySession(self, audit, Deadline(seconds))
        self._session = session
        session.join(join_seconds, stall_seconds)
        return session

    def request(self, request: Request, deadline: Deadline, phase: str) -> Any:
        """Send a request to the child and return its result. On any failure, replace the child."""
        if self._child is None:
            raise errors.SessionClosed("the party is closed")
        try:
            return self._child.request(request, deadline, phase)
        except BaseException:  # also Ctrl-C: an unread reply would answer the next request
            self._renew()
            raise

    def ended(self) -> None:
        """Forget the session, which has ended."""
        self._session = None

    def abandon(self) -> None:
        """End the session at once. The peers see that we disconnected."""
        if self._session is not None:
            self._renew()

    def interrupt(self) -> None:
        """Make what another thread does in a session fail at once, such as waiting for peers."""
        if self._child is not None:
            self._child.interrupt()

    def _replace_dead_child(self) -> None:
        """Replace a child that ended between two sessions."""
        if self._child is not None and self._session is None and not self._child.alive:
            self._renew()

    def _renew(self) -> None:
        self.ended()
        if self._child is not None:
            self._child.kill()
            self._child = PartyChild(self.config.rank, self._program)

    def close(self) -> None:
        self.ended()
        self._reservation.close()
        if self._child is not None:
            self._child.kill()
            self._child = None


class PartySession(Closing):
    """A `Session` that the child process executes. Leaving it with an error abandons it."""

    def __init__(self, party: Party, audit: str, deadline: Deadline) -> None:
        self.audit = audit
        self.sent_bytes = 0
        """Payload bytes sent to the peers; set when the session is closed without errors."""
        self._party = party
        self._deadline = deadline
        self._end_reason: str | None = None

    @property
    def rank(self) -> Rank:
        return self._party.rank

    def join(self, join_seconds: float, stall_seconds: float) -> None:
        seconds = self._deadline.seconds
        request = Join(
            config=self._party.config,
            audit=self.audit,
            seconds=seconds - min(_MARGIN * seconds, _MAX_MARGIN_SECONDS),
            started=self._deadline.started,
            join_seconds=join_seconds,
            stall_seconds=stall_seconds,
        )
        self._request(request, "the members met")

    def run(self, executable: Executable, inputs: Mapping[str, SessionInput]) -> RunResult:
        return self.call(Runtime.run, executable=executable, inputs=dict(inputs))

    def open(self, share: Share, fraction_bits: int) -> Words:
        return self.open_all([share], fraction_bits)[0]

    def open_all(self, shares: Sequence[Share], fraction_bits: int) -> list[Words]:
        return self.call(Runtime.open_all, shares=list(shares), fraction_bits=fraction_bits)

    def call(self, procedure: Procedure[P, T], *args: P.args, **arguments: P.kwargs) -> T:
        if args:
            raise TypeError("the arguments of a procedure are passed by name")
        phase = f"the members ran {procedure.__qualname__}"
        result = self._request(Call(name_of(procedure), arguments), phase)
        typed: T = typed_result(procedure, result)
        return typed

    def close(self) -> None:
        """Leave the session. Results are already final, so errors are ignored.

        A peer that is lost now is waited for only for `LEAVE_SECONDS`.
        """
        if self._end_reason is None:
            self._deadline = Deadline(min(LEAVE_SECONDS, self._deadline.remaining))
            with contextlib.suppress(errors.MpcError):
                self.sent_bytes = self._request(Leave(), "the members left").sent_bytes
            self._end_reason = "it was closed"
            self._party.ended()

    def _request(self, request: Request, phase: str) -> Any:
        if self._end_reason is not None:
            raise errors.SessionClosed(self._end_reason)
        try:
            return self._party.request(request, self._deadline, phase)
        except BaseException as error:
            self._end_reason = f"it failed: {error}"
            raise

    def __exit__(self, *exc: object) -> None:
        _, error, _ = exc
        if error is None:
            self.close()
        elif self._end_reason is None:  # the caller failed: do not make the peers wait for us
            self._end_reason = f"its caller failed: {error}"
            self._party.abandon()
