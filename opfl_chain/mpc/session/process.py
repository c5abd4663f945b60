"""The process in which a member's SPU runs: `python -m opfl_chain.mpc.session.process FD`

SPU may hang or abort in native code, so it runs outside the member's process. They talk over the
socket with file descriptor FD: one request, one reply. The process serves one session after the
other. When a session fails it reports why and exits, because a broken link cannot be reused; the
member starts a new process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opfl_chain.mpc.session import errors
from opfl_chain.mpc.session.agreement import Agreement
from opfl_chain.mpc.session.channels import SocketChannels
from opfl_chain.mpc.session.codec import (
    as_mpc_error,
    decode_value,
    encode_error,
    encode_value,
    typed_arguments,
)
from opfl_chain.mpc.session.heartbeat import Heartbeat
from opfl_chain.mpc.session.meeting import MeetingPoint
from opfl_chain.mpc.session.messages import HUGE, Buffer, Frame, receive_frame, send_frame
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.requests import Call, Join, Leave, Left, Warm
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.mpc.session.session import find_procedure, source_digest
from opfl_chain.mpc.session.statistics import run_log
from opfl_chain.mpc.session.tunnel import Tunnel, create_link
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline

_GRACE_SECONDS = 2.0


class JoinedSession:
    """A session's link, its runtime and its heartbeat."""

    def __init__(self, server: Server, request: Join) -> None:
        config = request.config
        deadline = Deadline(request.seconds, request.started)
        joining = Deadline(min(request.join_seconds, deadline.remaining))
        with _link_port(config) as port:
            meeting = MeetingPoint(config, request.audit, port, joining).meet()
            self.heartbeat = Heartbeat(
                meeting.connections,
                config.addresses,
                request.stall_seconds,
                deadline,
                server.fail,
            )
            server.heartbeat = self.heartbeat
            self.heartbeat.phase = "the members connected their links"
            addresses = meeting.link_addresses
            if meeting.link_streams:
                server.tunnel = Tunnel(config, meeting.link_streams, server.give_up)
                addresses = server.tunnel.addresses
            self._tunnel = server.tunnel
            self._link = create_link(config, meeting.link_id, addresses, deadline)
        self.channels = SocketChannels(meeting.streams, deadline)
        self.runtime = Runtime(
            link=self._link,
            channels=self.channels,
            rank=config.rank,
            addresses=config.addresses,
            recv_seconds=deadline.seconds,
            log=run_log(),
        )

    def leave(self) -> None:
        """End the session together with the peers.

        `stop_link` waits for the peers' last acknowledgements, which do not come if they have
        dropped their links: so no member drops its link before all have stopped.
        """
        self.heartbeat.expect_end()
        if self._tunnel:
            self._tunnel.expect_end()
        self._link.stop_link()
        self.runtime.exchange(b"stopped")
        self.runtime.drop_link()
        del self._link
        self.heartbeat.leave()
        self.channels.close()
        if self._tunnel:
            self._tunnel.close()


@contextmanager
def _link_port(config: PartyConfig) -> Iterator[int]:
    """Yield the port of our link: under TLS, the port at which members meet."""
    if config.tls:
        yield split_address(config.address)[1]
        return
    with config.reserve_link_port() as holder:
        yield holder.getsockname()[1]


class Server:
    """Server of one member's requests, over a socket."""

    def __init__(self, stream: socket.socket) -> None:
        self.heartbeat: Heartbeat | None = None
        self.tunnel: Tunnel | None = None
        self._stream = stream
        self._session: JoinedSession | None = None
        self._replying = threading.Lock()

    def serve(self) -> None:
        while True:
            frame = receive_frame(self._stream, None, HUGE)
            name, blobs = "a request", list[Buffer]()
            try:
                request = decode_value(frame.header, frame.blobs)
                name = request.procedure if isinstance(request, Call) else type(request).__name__
                header = {"result": encode_value(self._do(request), blobs)}
            except Exception as error:  # noqa: BLE001 - any error is reported to the member
                self.give_up(as_mpc_error(error, name))
            with self._replying:
                if self.heartbeat:
                    self.heartbeat.phase = "this member was idle"
                send_frame(self._stream, Frame(header, tuple(blobs)), None)

    def _do(self, request: object) -> Any:
        match request:
            case Warm():
                return None
            case Join():
                self._session = JoinedSession(self, request)
                return None
            case Call():
                return self._call(request)
            case Leave():
                return self._leave()
        raise errors.SessionClosed(f"a {type(request).__name__} is not a request")

    def _call(self, request: Call) -> Any:
        if self._session is None:
            raise errors.SessionClosed("no session was joined")
        runtime, name = self._session.runtime, request.procedure
        procedure = find_procedure(name)
        try:
            arguments = typed_arguments(procedure, request.arguments)
        except errors.FrameInvalid as error:
            raise errors.ProgramFailed(name, str(error)) from error
        self._session.heartbeat.phase = f"the members ran {name.rpartition(':')[2]}"
        if procedure.__module__ != Runtime.__module__:  # methods of Runtime agree on their own
            runtime.agree(Agreement(name, source_digest()))
        return runtime.call(procedure, **arguments)

    def _leave(self) -> Left:
        session, self._session, self.heartbeat, self.tunnel = self._session, None, None, None
        if session is None:
            return Left(0)
        session.leave()
        return Left(session.runtime.sent_bytes + session.runtime.spu_sent_bytes)

    def fail(self, error: errors.SessionError) -> None:
        """End the session, whatever the main thread is doing. Called by the heartbeat.

        If no request is pending, the member reads this reply with its next request.
        """
        with self._replying:
            if self.heartbeat:
                self.heartbeat.say_why(error)
            self._fail_with(error)

    def give_up(self, error: errors.MpcError) -> None:
        """End the session after an error in any other thread."""
        if isinstance(error, errors.PeerLost):
            # The peer may have left because of another one, which the heartbeat reports first.
            time.sleep(_GRACE_SECONDS)
        if self.heartbeat:
            self.heartbeat.leave(error)
        with self._replying:
            self._fail_with(error)

    def _fail_with(self, error: errors.MpcError) -> None:
        if self.tunnel:
            self.tunnel.forget_folder()
        send_frame(self._stream, Frame({"error": encode_error(error)}), Deadline(1.0))
        os._exit(0)  # not sys.exit, which waits for SPU's threads


def _end_with_member(stream: socket.socket) -> None:
    """Exit when the member does, even during a run."""
    while True:
        time.sleep(1.0)
        try:
            if not stream.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                os._exit(0)
        except BlockingIOError:
            continue
        except OSError:
            os._exit(0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the member, which decides
    stream = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_end_with_member, args=(stream,), daemon=True).start()
    run_log()
    try:
        Server(stream).serve()
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    main()
