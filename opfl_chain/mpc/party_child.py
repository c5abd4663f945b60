"""A member's SPU process, seen from the member."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from typing import Any

from opfl_chain.mpc.error_values import decode_error
from opfl_chain.mpc.errors import DeadlineExceeded, FrameInvalid, RuntimeDied
from opfl_chain.mpc.frames import HUGE, Buffer, Frame, receive_frame, send_frame
from opfl_chain.mpc.ranks import MEMBERS, Rank
from opfl_chain.mpc.values import decode_value, encode_value
from opfl_chain.transport.deadline import Deadline

_TAIL_LINES = 15
_END_SECONDS = 1.0


class PartyChild:
    """Started on construction, which does not wait for it to be up."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._stream, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `kill`
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "opfl_chain.mpc.party_process", str(theirs.fileno())],
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

    def request(self, request: dict[str, Any], deadline: Deadline, phase: str) -> Any:
        """Have something done. Raises what it raised; the process is then of no more use."""
        blobs: list[Buffer] = []
        header = encode_value(request, blobs)
        try:
            # Should it have ended with an error, its last words can still be read.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                send_frame(self._stream, Frame(header, tuple(blobs)), deadline)
            reply = receive_frame(self._stream, deadline, HUGE)
        except TimeoutError:
            raise DeadlineExceeded(deadline.seconds, phase) from None
        except OSError:
            raise RuntimeDied(self._rank, self._ending(), self._last_words()) from None
        return result_in(reply)

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
        return f"ended with code {code}"

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]
        return "\n".join(f"  {line}" for line in lines) or "  (empty)"


def result_in(reply: Frame) -> Any:
    """What the process returned. Raises what it raised."""
    match reply.header:
        case {"error": error}:
            raise decode_error(error)
        case {"result": result}:
            return decode_value(result, reply.blobs)
    raise FrameInvalid("it is a reply with neither a result nor an error")


def _environment() -> dict[str, str]:
    """Keep matrix products from using more threads than there are cores for three members.

    SPU takes up to four for each product, and they wait for each other in busy loops: with more
    threads than cores a product of 0.2 ms takes 50 ms.
    """
    limit = max(1, (os.cpu_count() or 1) // MEMBERS)
    return {"OMP_THREAD_LIMIT": str(limit), **os.environ}
