"""A member that meets the others and then misbehaves, as a program: libspu may end its process.

Arguments: the behaviour, its `PartyConfig` as JSON, and the agreement to send. Runs until killed.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opfl_chain.mpc.session.channels import SocketChannels
from opfl_chain.mpc.session.codec import decode_value
from opfl_chain.mpc.session.executable import MpcOptions
from opfl_chain.mpc.session.heartbeat import Heartbeat
from opfl_chain.mpc.session.libspu import libspu
from opfl_chain.mpc.session.meeting import Meeting, MeetingPoint
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import peers_of
from opfl_chain.mpc.session.statistics import run_log
from opfl_chain.mpc.session.tunnel import create_link
from opfl_chain.transport.deadline import Deadline

AUDIT = "cheat"


@dataclass(frozen=True)
class Cheater:
    config: PartyConfig
    meeting: Meeting
    agreement: bytes

    def say_nothing(self) -> None:
        time.sleep(60)

    def go_away(self) -> None:
        sys.exit()

    def send_garbage_to_the_heartbeat(self) -> None:
        streams = (connection.stream for connection in self.meeting.connections.values())
        self._send(streams, b"garbage, and more of it")

    def send_garbage_for_an_agreement(self) -> None:
        _, channels = self._connect()
        for rank in peers_of(self.config.rank):
            channels.send(rank, b"\xff" * 100)

    def announce_a_huge_message(self) -> None:
        self._connect()
        self._send(self.meeting.streams.values(), b"\xff" * 8)

    def send_garbage_to_spu(self) -> None:
        """Agree to run the program, then send something that SPU does not expect."""
        link, channels = self._connect()
        for rank in peers_of(self.config.rank):
            channels.send(rank, self.agreement)
        for rank in peers_of(self.config.rank):
            channels.receive(rank)
        machine = libspu.RuntimeWrapper(link, MpcOptions().runtime_config())
        for rank in peers_of(self.config.rank):
            for _ in range(4):
                link.send_async(rank, b"garbage")
        time.sleep(60)
        del machine

    def _connect(self) -> tuple[Any, SocketChannels]:
        meeting, deadline = self.meeting, Deadline(60)
        addresses = self.config.addresses
        Heartbeat(meeting.connections, addresses, 60, deadline, print)  # alive, to all appearances
        link = create_link(self.config, meeting.link_id, meeting.link_addresses, Deadline(60))
        return link, SocketChannels(meeting.streams, Deadline(60))

    def _send(self, streams: Iterable[socket.socket], data: bytes) -> None:
        for stream in streams:
            stream.setblocking(True)
            stream.sendall(data)


if __name__ == "__main__":
    run_log()
    config = decode_value(json.loads(sys.argv[2]), ())
    with config.reserve_link_port() as holder:
        print("here", flush=True)
        port = holder.getsockname()[1]
        meeting = MeetingPoint(config, AUDIT, port, Deadline(60)).meet()
        getattr(Cheater(config, meeting, sys.argv[3].encode()), sys.argv[1])()
        time.sleep(60)
