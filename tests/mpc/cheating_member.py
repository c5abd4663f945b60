"""A member that meets the others and then misbehaves, as a program: libspu may end its process.

Arguments: the behaviour, a seat as JSON, and what it is expected to agree to. Stays until killed.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opfl_chain.mpc.link import create_link
from opfl_chain.mpc.native import libspu
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.ranks import peers_of
from opfl_chain.mpc.rendezvous import Meeting, Rendezvous
from opfl_chain.mpc.run_log import run_log
from opfl_chain.mpc.seat import Seat
from opfl_chain.mpc.watch import Watch
from opfl_chain.mpc.wires import SocketWires
from opfl_chain.transport.deadline import Deadline

AUDIT = "cheat"


@dataclass(frozen=True)
class Cheater:
    seat: Seat
    meeting: Meeting
    agreement: bytes

    def say_nothing(self) -> None:
        time.sleep(60)

    def go_away(self) -> None:
        sys.exit()

    def send_garbage_to_the_watch(self) -> None:
        watched = (connection.stream for connection in self.meeting.connections.values())
        self._send(watched, b"garbage, and more of it")

    def send_garbage_for_an_agreement(self) -> None:
        _, wires = self._connect()
        for rank in peers_of(self.seat.rank):
            wires.send(rank, b"\xff" * 100)

    def announce_a_huge_message(self) -> None:
        self._connect()
        self._send(self.meeting.streams.values(), b"\xff" * 8)

    def send_garbage_to_spu(self) -> None:
        """Agree to run the program, and then send something else than SPU expects."""
        link, wires = self._connect()
        for rank in peers_of(self.seat.rank):
            wires.send(rank, self.agreement)
        for rank in peers_of(self.seat.rank):
            wires.receive(rank)
        machine = libspu.RuntimeWrapper(link, MpcOptions().runtime_config())
        for rank in peers_of(self.seat.rank):
            for _ in range(4):
                link.send_async(rank, b"garbage")
        time.sleep(60)
        del machine

    def _connect(self) -> tuple[Any, SocketWires]:
        meeting, deadline = self.meeting, Deadline(60)
        addresses = self.seat.addresses
        Watch(meeting.connections, addresses, 60, deadline, print)  # alive, to all appearances
        link = create_link(self.seat, meeting.link_id, meeting.link_addresses, Deadline(10))
        return link, SocketWires(meeting.streams, Deadline(10))

    def _send(self, streams: Iterable[socket.socket], data: bytes) -> None:
        for stream in streams:
            stream.setblocking(True)
            stream.sendall(data)


if __name__ == "__main__":
    run_log()
    seat = Seat.from_json(json.loads(sys.argv[2]))
    with seat.reserve_link_port() as holder:
        print("here", flush=True)
        port = holder.getsockname()[1]
        meeting = Rendezvous(seat, AUDIT, port, Deadline(15)).meet()
        getattr(Cheater(seat, meeting, sys.argv[3].encode()), sys.argv[1])()
        time.sleep(60)
