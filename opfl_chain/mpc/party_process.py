"""The process in which a member's SPU runs: `python -m opfl_chain.mpc.party_process FD`

SPU may hang or abort in native code, so the member itself only talks to this process, over a socket
whose number is the argument: one request, one reply. The process serves one session after the
other. When one fails it says why and ends, for the state of a broken link is not worth keeping;
the member has another started by then.
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

from opfl_chain.mpc.agreement import Agreement
from opfl_chain.mpc.error_values import as_mpc_error, encode_error
from opfl_chain.mpc.errors import MpcError, PeerLost, SessionClosed, SessionError
from opfl_chain.mpc.frames import HUGE, Buffer, Frame, receive_frame, send_frame
from opfl_chain.mpc.link import create_link
from opfl_chain.mpc.procedures import find_procedure, source_digest
from opfl_chain.mpc.rendezvous import Rendezvous
from opfl_chain.mpc.run_log import run_log
from opfl_chain.mpc.runtime import Runtime
from opfl_chain.mpc.seat import Seat
from opfl_chain.mpc.tunnel import Tunnel
from opfl_chain.mpc.values import decode_value, encode_value
from opfl_chain.mpc.watch import Watch
from opfl_chain.mpc.wires import SocketWires
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline

_GRACE_SECONDS = 2.0


class JoinedSession:
    """The link, the runtime on it, and the watch beside it."""

    def __init__(self, server: Server, seat: Seat, request: dict[str, Any]) -> None:
        deadline = Deadline(request["seconds"], request["started"])
        joining = Deadline(min(request["join_seconds"], deadline.remaining))
        started = time.perf_counter()
        with _link_port(seat) as port:
            meeting = Rendezvous(seat, request["audit"], port, joining).meet()
            met = time.perf_counter()
            self.watch = Watch(
                meeting.connections,
                seat.addresses,
                request["stall_seconds"],
                deadline,
                server.fail,
            )
            server.watch = self.watch
            self.watch.phase = "the members connected their links"
            addresses = meeting.link_addresses
            if meeting.link_streams:
                server.tunnel = Tunnel(seat, meeting.link_streams, server.give_up)
                addresses = server.tunnel.addresses
            self._tunnel = server.tunnel
            self._link = create_link(seat, meeting.link_id, addresses, deadline)
        linked = time.perf_counter()
        self.wires = SocketWires(meeting.streams, deadline)
        self.runtime = Runtime(
            link=self._link,
            wires=self.wires,
            rank=seat.rank,
            addresses=seat.addresses,
            recv_seconds=deadline.seconds,
            log=run_log(),
        )
        self.timings = {"meet_seconds": met - started, "link_seconds": linked - met}

    def leave(self) -> None:
        """End the session in good order, when all have what they need of each other.

        `stop_link` waits for the peers' last acknowledgements, which do not come if they have
        dropped their links: so nobody does before all have stopped.
        """
        self.watch.expect_end()
        if self._tunnel:
            self._tunnel.expect_end()
        self._link.stop_link()
        self.runtime.exchange(b"stopped")
        self.runtime.drop_link()
        del self._link
        self.watch.leave()
        self.wires.close()
        if self._tunnel:
            self._tunnel.close()


@contextmanager
def _link_port(seat: Seat) -> Iterator[int]:
    """Where peers reach our link: under TLS, through connections to where the members meet."""
    if seat.tls:
        yield split_address(seat.address)[1]
        return
    with seat.reserve_link_port() as holder:
        yield holder.getsockname()[1]


class Server:
    """Serves the member at the other end of a socket."""

    def __init__(self, stream: socket.socket) -> None:
        self.watch: Watch | None = None
        self.tunnel: Tunnel | None = None
        self._stream = stream
        self._session: JoinedSession | None = None
        self._replying = threading.Lock()

    def serve(self) -> None:
        while True:
            frame = receive_frame(self._stream, None, HUGE)
            blobs: list[Buffer] = []
            try:
                result = self._do(decode_value(frame.header, frame.blobs))
                header = {"result": encode_value(result, blobs)}
            except Exception as error:  # noqa: BLE001 - whatever it is, the member is told
                name = frame.header.get("procedure", frame.header.get("do"))
                self.give_up(as_mpc_error(error, str(name)))
            with self._replying:
                if self.watch:
                    self.watch.phase = "this member was asked for nothing"
                send_frame(self._stream, Frame(header, tuple(blobs)), None)

    def _do(self, request: dict[str, Any]) -> Any:
        match request["do"]:
            case "join":
                self._session = JoinedSession(self, Seat.from_json(request["seat"]), request)
                return self._session.timings
            case "call":
                return self._call(request["procedure"], request["arguments"])
            case "nothing":
                return None
            case "leave":
                session, self._session, self.watch = self._session, None, None
                self.tunnel = None
                if session is None:
                    return {"sent_bytes": 0}
                session.leave()
                sent = session.runtime.sent_bytes + session.runtime.spu_sent_bytes
                return {"sent_bytes": sent}
            case other:
                raise SessionClosed(f"there is no request {other!r}")

    def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        if self._session is None:
            raise SessionClosed("it was not joined")
        runtime, watch = self._session.runtime, self._session.watch
        procedure = find_procedure(name)
        watch.phase = f"the members ran {name.rpartition(':')[2]}"
        if procedure.__module__ != Runtime.__module__:  # its own methods see to that themselves
            runtime.agree(Agreement(name, source_digest()))
        return runtime.call(procedure, **arguments)

    def fail(self, error: SessionError) -> None:
        """What the watch calls: the session is over, whatever the other thread is doing.

        If it is doing nothing, the member finds this reply when it asks for something.
        """
        with self._replying:
            if self.watch:
                self.watch.say_why(error)
            self._fail_with(error)

    def give_up(self, error: MpcError) -> None:
        """What any other thread calls that cannot go on."""
        if isinstance(error, PeerLost):
            # It may have left because of another: the watch knows, and ends this process.
            time.sleep(_GRACE_SECONDS)
        if self.watch:
            self.watch.leave(error)
        with self._replying:
            self._fail_with(error)

    def _fail_with(self, error: MpcError) -> None:
        if self.tunnel:
            self.tunnel.forget_folder()
        send_frame(self._stream, Frame({"error": encode_error(error)}), Deadline(1.0))
        os._exit(0)  # not sys.exit, which waits for threads of SPU


def _end_with_member(stream: socket.socket) -> None:
    """End when the member does, also in the middle of a run."""
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
