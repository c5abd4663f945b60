"""The tunnel without SPU: forwarding, back-pressure and shutdown."""

from __future__ import annotations

import itertools
import queue
import select
import socket
import ssl
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from opfl_chain.mpc.local import free_addresses
from opfl_chain.mpc.session.errors import LinkFailed, MpcError, PeerLost
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import certificate_name
from opfl_chain.mpc.session.tunnel import Tunnel
from opfl_chain.transport.certificates import Authority
from opfl_chain.transport.tls import TlsFiles

SECONDS = 120.0
PAIRS = list(itertools.permutations(range(3), 2))
LONG = bytes(range(256)) * (1 << 15)
"""8 MiB: more than all buffers on the way hold."""


def secured(
    caller: TlsFiles, called: TlsFiles, called_name: str
) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection under TLS."""
    ends = socket.socketpair()
    client, server = (
        caller.context(ssl.PROTOCOL_TLS_CLIENT),
        called.context(ssl.PROTOCOL_TLS_SERVER),
    )
    with ThreadPoolExecutor(1) as pool:
        answered = pool.submit(server.wrap_socket, ends[1], server_side=True)
        return client.wrap_socket(ends[0], server_hostname=called_name), answered.result()


@dataclass
class Committee:
    """Three tunnels, and sockets in place of SPU's links."""

    stack: ExitStack
    tunnels: list[Tunnel]
    streams: dict[tuple[int, int], tuple[socket.socket, socket.socket]]
    failures: queue.SimpleQueue[MpcError]
    links: dict[int, socket.socket] = field(default_factory=dict)

    def listen(self, rank: int) -> None:
        link = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        link.settimeout(SECONDS)
        link.bind(self.path(rank, rank))
        link.listen()
        self.links[rank] = link

    def call(self, caller: int, called: int) -> socket.socket:
        stream = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        stream.settimeout(SECONDS)
        stream.connect(self.path(caller, called))
        return stream

    def answer(self, rank: int) -> list[socket.socket]:
        """Return the connections of the callers, in no order."""
        streams = [self.links[rank].accept()[0] for _ in range(2)]
        for stream in streams:
            stream.settimeout(SECONDS)
            self.stack.enter_context(stream)
        return streams

    def connect(self) -> dict[tuple[int, int], tuple[socket.socket, socket.socket]]:
        """Return both ends of each link's calls to the others."""
        for rank in range(3):
            self.listen(rank)
        calls = {pair: self.call(*pair) for pair in PAIRS}
        for (caller, _), stream in calls.items():
            stream.sendall(bytes([caller]))
        answered = {
            (receive(stream, 1)[0], rank): stream
            for rank in range(3)
            for stream in self.answer(rank)
        }
        return {pair: (calls[pair], answered[pair]) for pair in PAIRS}

    def path(self, rank: int, of: int) -> str:
        return self.tunnels[rank].addresses[of].removeprefix("unix:")

    def folders(self) -> list[Path]:
        return [Path(self.path(rank, rank)).parent for rank in range(3)]


def receive(stream: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = stream.recv(1 << 16)
        assert part, f"it ended after {len(data)} bytes"
        data += part
    return bytes(data)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[TlsFiles]:
    authority = Authority.create(tmp_path_factory.mktemp("tls"))
    return [authority.issue(certificate_name(rank)) for rank in range(3)]


@pytest.fixture
def committee(files: list[TlsFiles]) -> Iterator[Committee]:
    addresses = free_addresses()
    streams = {(a, b): secured(files[a], files[b], certificate_name(b)) for a, b in PAIRS}
    failures: queue.SimpleQueue[MpcError] = queue.SimpleQueue()
    with ExitStack() as stack:
        tunnels = []
        for rank in range(3):
            ends = {pair: ends[pair.index(rank)] for pair, ends in streams.items() if rank in pair}
            tunnels.append(Tunnel(PartyConfig(rank, addresses, files[rank]), ends, failures.put))
            stack.callback(tunnels[-1].close)
        yield Committee(stack, tunnels, streams, failures)


def test_tunnel_carries_long_messages_both_ways_at_once(committee: Committee) -> None:
    ends = [stream for pair in committee.connect().values() for stream in pair]
    senders = [threading.Thread(target=stream.sendall, args=(LONG,)) for stream in ends]
    for sender in senders:
        sender.start()
    with ThreadPoolExecutor(len(ends)) as pool:
        received = list(pool.map(lambda stream: receive(stream, len(LONG)), ends))
    for sender in senders:
        sender.join()
    assert all(data == LONG for data in received)


def test_a_link_may_call_before_the_other_listens(committee: Committee) -> None:
    committee.call(0, 1).sendall(b"early")
    time.sleep(0.1)
    committee.listen(1)
    readable, _, _ = select.select(committee.answer(1), [], [], SECONDS)
    assert [stream.recv(100) for stream in readable] == [b"early"]


def test_a_reader_that_pauses_holds_the_writer_up(committee: Committee) -> None:
    caller, called = committee.connect()[0, 1]
    caller.settimeout(0.5)
    sent = 0
    with pytest.raises(TimeoutError):
        while sent < len(LONG):
            sent += caller.send(LONG[sent : sent + (1 << 16)])
    assert receive(called, sent) == LONG[:sent]
    caller.sendall(b"more")
    assert receive(called, 4) == b"more"


def test_only_this_user_gets_at_the_sockets_and_only_at_the_start(committee: Committee) -> None:
    folders = committee.folders()
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    committee.connect()
    deadline = time.monotonic() + SECONDS
    while any(folder.exists() for folder in folders) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize("stream", [0, 1])
def test_a_stream_that_breaks_is_a_lost_peer(committee: Committee, stream: int) -> None:
    committee.connect()
    committee.streams[1, 2][stream].shutdown(socket.SHUT_RDWR)
    lost = [committee.failures.get(timeout=SECONDS) for _ in range(2)]
    assert all(isinstance(error, PeerLost) for error in lost)
    assert {error.rank for error in lost if isinstance(error, PeerLost)} == {1, 2}


def test_a_peer_that_leaves_at_the_end_is_not_lost(committee: Committee) -> None:
    ends = committee.connect()
    for tunnel in committee.tunnels:
        tunnel.expect_end()
    committee.tunnels[0].close()
    assert ends[1, 0][0].recv(1) == b""
    assert ends[0, 2][1].recv(1) == b""
    assert committee.failures.empty()


def test_data_sent_before_the_end_arrives(committee: Committee) -> None:
    caller, called = committee.connect()[0, 1]
    for tunnel in committee.tunnels:
        tunnel.expect_end()
    caller.sendall(LONG[: 1 << 18])
    caller.close()
    assert receive(called, 1 << 18) == LONG[: 1 << 18]
    assert called.recv(1) == b""


def test_close_closes_everything(committee: Committee) -> None:
    """Also sockets that SPU never opened."""
    committee.listen(0)
    committee.call(0, 1)
    before = {thread for thread in threading.enumerate() if thread.name == "tunnel"}
    for tunnel in committee.tunnels:
        tunnel.close()
    assert not any(thread.is_alive() for thread in before)
    assert all(end.fileno() == -1 for ends in committee.streams.values() for end in ends)
    assert not any(folder.exists() for folder in committee.folders())
    assert committee.failures.empty()


def test_a_folder_that_is_too_deep_is_reported(
    files: list[TlsFiles], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(LinkFailed, match="too long"):
        Tunnel(PartyConfig(0, free_addresses(), files[0]), {}, print)
    assert not list(deep.iterdir())
