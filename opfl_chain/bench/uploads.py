"""Uploads of clients: packages that members receive, write to disk and acknowledge."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from opfl_chain.bench.network import LOOPBACK, Place
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.system.closing import Closing

_LENGTH = struct.Struct(">Q")
_AT_ONCE = 64
"""Concurrent connections: more than a round has."""


class Members(Closing):
    """Listeners that receive packages, write them to disk if `durable`, and acknowledge them.

    They write as a member's SQLite does: append to one file and sync it each time.
    """

    def __init__(self, durable: bool, places: Sequence[Place] = LOOPBACK) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="opfl-bench-")
        self._journals = [Journal(Path(self._folder.name) / f"{rank}") for rank in range(MEMBERS)]
        self._durable = durable
        *members, self._client = places
        self._sockets = [_listener(each) for each in members]
        self._senders, self._receivers = ThreadPoolExecutor(_AT_ONCE), ThreadPoolExecutor(_AT_ONCE)
        for rank, each in enumerate(self._sockets):
            threading.Thread(target=self._listen, args=(rank, each), daemon=True).start()

    def close(self) -> None:
        for each in self._sockets:
            each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._senders.shutdown()
        self._receivers.shutdown()
        for journal in self._journals:
            journal.close()
        self._folder.cleanup()

    def take(self, of_clients: Sequence[Sequence[bytes]]) -> None:
        """Send a package from every client to each member, all at once."""
        sends = [
            self._senders.submit(self._send, each.getsockname(), package)
            for packages in of_clients
            for each, package in zip(self._sockets, packages, strict=True)
        ]
        for send in sends:
            send.result()

    def _send(self, address: Any, package: bytes) -> None:
        with self._client.socket() as connection:
            connection.connect(address)
            connection.sendall(_LENGTH.pack(len(package)))
            connection.sendall(package)
            if connection.recv(1) != b"1":
                raise AssertionError("a member did not acknowledge its package")

    def _listen(self, rank: int, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # closed
                return
            self._receivers.submit(self._receive, connection, self._journals[rank])

    def _receive(self, connection: socket.socket, journal: Journal) -> None:
        with connection:
            (size,) = _LENGTH.unpack(connection.recv(_LENGTH.size, socket.MSG_WAITALL))
            package = bytearray(size)
            if connection.recv_into(package, size, socket.MSG_WAITALL) != size:
                return  # without an acknowledgement
            if self._durable:
                journal.append(package)
            connection.sendall(b"1")


class Journal:
    """An append-only file, synced after every append."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._one_at_a_time = threading.Lock()

    def append(self, data: bytes | bytearray) -> None:
        with self._one_at_a_time:
            self._file.write(data)
            os.fdatasync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _listener(place: Place) -> socket.socket:
    listener = place.socket()
    listener.bind((place.address, 0))
    listener.listen(_AT_ONCE)
    return listener
