"""Tunnel that carries SPU's link between machines over our own TLS connections.

SPU's link has its own TLS, which is unusable: with packets of 1500 bytes, as off loopback, a member
misses a message in every tenth run and waits for ever. Nor does it check whose certificate it is
shown. So the link connects without TLS to Unix sockets, in a folder that only this user may enter,
and a thread forwards its data over the connections that were authenticated when the members met.
"""

from __future__ import annotations

import select
import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opfl_chain.mpc.session.errors import LinkFailed, MpcError, PeerLost, ProgramFailed
from opfl_chain.mpc.session.libspu import libspu, reason_of
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import MEMBERS, Rank, peers_of
from opfl_chain.transport.deadline import Deadline

_BUFFER_BYTES = 1 << 18
_MAX_STEPS = 32
"""Steps of one flow in a row, so that a busy flow does not hold up the others."""
_OPEN_SECONDS = 0.005
"""Interval of checking whether SPU has opened its sockets."""
_STOP_SECONDS = 2.0
_BLOCKED = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_NOT_YET = (BlockingIOError, FileNotFoundError, ConnectionRefusedError)
_RETRY_MILLISECONDS = 20
"""Short, because peers meet first and then create the link at the same time."""
_RETRIES = 10_000 // _RETRY_MILLISECONDS


class Flow:
    """Data from one socket to another. Reads only when all data has been sent on, so a slow reader
    slows the writer at the far end, and buffers stay small.
    """

    def __init__(self, source: socket.socket, sink: socket.socket, peer: Rank) -> None:
        self.ends = self.source, self.sink = source, sink
        self.peer = peer
        self.ended = False
        """True once the source has ended and all its data was sent on, or a socket failed."""
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self.waiting = self._buffer[:0]
        """Data that was read and not yet sent on."""

    def advance(self) -> bool:
        """Forward data without blocking; return whether there may be more."""
        try:
            for _ in range(_MAX_STEPS):
                if self.waiting:
                    self.waiting = self.waiting[self.sink.send(self.waiting) :]
                elif count := self.source.recv_into(self._buffer):
                    self.waiting = self._buffer[:count]
                else:
                    self.ended = True
                    return False
        except _BLOCKED:
            return False
        except OSError:
            self.ended = True
            return False
        return True


class Tunnel:
    """A thread that owns the streams. `addresses` are the local ones that SPU's link connects to.

    `on_failure` is called from that thread when a stream ends unexpectedly.
    """

    def __init__(
        self,
        config: PartyConfig,
        streams: Mapping[tuple[Rank, Rank], socket.socket],
        on_failure: Callable[[MpcError], None],
    ) -> None:
        self._config = config
        self._unopened = dict(streams)
        self._on_failure = on_failure
        self._flows: list[Flow] = []
        self._closing = False
        self._folder = Path(tempfile.mkdtemp(prefix="opfl-link-"))
        try:
            self._listeners = {peer: _listener(self._path(peer)) for peer in peers_of(config.rank)}
        except OSError as error:
            self.forget_folder()
            raise LinkFailed(str(self._folder), str(error)) from error
        self._wake_in, self._wake_out = socket.socketpair()
        self.addresses = tuple(f"unix:{self._path(rank)}" for rank in range(MEMBERS))
        self._thread = threading.Thread(target=self._carry, name="tunnel", daemon=True)
        self._thread.start()

    def expect_end(self) -> None:
        """Stop treating the end of a stream as a failure."""
        self._closing = True

    def close(self) -> None:
        """End the thread and close all connections."""
        self._closing = True
        self._wake_out.close()
        self._thread.join(_STOP_SECONDS)

    def forget_folder(self) -> None:
        """Delete the sockets' folder, which is not needed once the link is connected.

        A process that is killed before that leaves it behind.
        """
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, rank: Rank) -> Path:
        return self._folder / str(rank)

    def _carry(self) -> None:
        busy: list[Flow] = []
        try:
            while True:
                busy += self._open()
                pause = 0.0 if busy else _OPEN_SECONDS if self._unopened else None
                reading = [flow.source for flow in self._flows if not flow.waiting]
                writing = [flow.sink for flow in self._flows if flow.waiting]
                came, taken, _ = select.select([self._wake_in, *reading], writing, [], pause)
                if self._wake_in in came:
                    return
                ready = [
                    flow
                    for flow in self._flows
                    if flow in busy or (flow.sink in taken if flow.waiting else flow.source in came)
                ]
                busy = [flow for flow in ready if flow.advance()]
                for flow in ready:
                    if flow.ended and flow in self._flows:
                        self._end(flow)
        except Exception as error:  # noqa: BLE001 - nothing else would notice that this thread stopped
            self._on_failure(ProgramFailed("the tunnel", repr(error)))
        finally:
            self._close_all()

    def _open(self) -> list[Flow]:
        """Connect streams to the sockets that our link has opened, to call a peer or be called."""
        opened: list[Flow] = []
        for (caller, called), stream in list(self._unopened.items()):
            ours = caller == self._config.rank
            try:
                plain = self._accept(called) if ours else _call(self._path(self._config.rank))
            except _NOT_YET:
                continue
            stream.setblocking(False)
            plain.setblocking(False)
            peer = called if ours else caller
            opened += [Flow(plain, stream, peer), Flow(stream, plain, peer)]
            del self._unopened[caller, called]
        self._flows += opened
        if opened and not self._unopened:
            self.forget_folder()
        return opened

    def _accept(self, peer: Rank) -> socket.socket:
        plain, _ = self._listeners[peer].accept()
        self._listeners[peer].close()
        return plain

    def _end(self, ended: Flow) -> None:
        """Close both directions: SPU's link never leaves a connection half open."""
        self._flows = [flow for flow in self._flows if flow.source not in ended.ends]
        for end in ended.ends:
            end.close()
        if not self._closing:
            self._on_failure(PeerLost(ended.peer, self._config.addresses[ended.peer]))

    def _close_all(self) -> None:
        flowing = [flow.source for flow in self._flows]
        for each in (*flowing, *self._unopened.values(), *self._listeners.values(), self._wake_in):
            each.close()
        self.forget_folder()


def _listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.setblocking(False)
    try:
        listener.bind(str(path))
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def _call(path: Path) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.setblocking(False)
    try:
        stream.connect(str(path))
    except BaseException:
        stream.close()
        raise
    return stream


def create_link(
    config: PartyConfig, link_id: str, addresses: tuple[str, ...], deadline: Deadline
) -> Any:
    """Connect to both peers, whose links must be created at about the same time.

    The link itself is never encrypted: off loopback, the addresses are those of a `Tunnel`.
    """
    milliseconds = max(1, int(deadline.remaining * 1000))
    description = libspu.link.Desc()
    description.id = link_id
    for rank, address in enumerate(addresses):
        description.add_party(f"member-{rank}", address)
    description.recv_timeout_ms = milliseconds
    description.http_timeout_ms = milliseconds
    description.connect_retry_times = max(1, milliseconds // _RETRY_MILLISECONDS)
    description.connect_retry_interval_ms = _RETRY_MILLISECONDS
    # By default a refused message is sent again after a second, and one always is refused. If all
    # retries fail libspu ends the process, so there are enough for the heartbeat to find out why.
    description.retry_opts.retry_interval_ms = _RETRY_MILLISECONDS
    description.retry_opts.retry_interval_incr_ms = 0
    description.retry_opts.max_retry = _RETRIES
    try:
        return libspu.link.create_brpc(description, config.rank)
    except RuntimeError as error:
        raise LinkFailed(addresses[config.rank], reason_of(error)) from error
