"""An abandoned meeting with a member leaves nothing behind."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from opfl_chain.mpc.local import free_addresses
from opfl_chain.mpc.session.errors import PeerUnreachable
from opfl_chain.mpc.session.greeting import Connection, Hello
from opfl_chain.mpc.session.meeting import MeetingPoint
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline

AUDIT = "audit 7"
MEET_SECONDS = 10.0
END_SECONDS = 60.0


def call(address: str, nonce: str) -> socket.socket:
    """Greet a member as member 2, for one purpose only."""
    deadline = Deadline(MEET_SECONDS)
    while True:
        try:
            stream = socket.create_connection(split_address(address), deadline.remaining)
            break
        except ConnectionRefusedError:
            assert not deadline.passed
    connection = Connection(stream)
    connection.send(Hello(AUDIT, 2, 40123, nonce).to_json("watch"), deadline)
    assert Hello.from_json(connection.receive(deadline)).audit == AUDIT
    return stream


def assert_closed(stream: socket.socket) -> None:
    stream.settimeout(END_SECONDS)
    with stream:
        assert stream.recv(1) == b""


def test_half_made_connections_are_closed() -> None:
    addresses = free_addresses()
    meeting = MeetingPoint(PartyConfig(0, addresses), AUDIT, 40000, Deadline(MEET_SECONDS))
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(meeting.meet)
        streams = [call(addresses[0], f"{attempt:032x}") for attempt in range(3)]
        for stream in streams[:-1]:
            assert_closed(stream)
            assert not outcome.done()  # closed by the next call, not only at the end
        assert isinstance(outcome.exception(), PeerUnreachable)
    assert_closed(streams[-1])
