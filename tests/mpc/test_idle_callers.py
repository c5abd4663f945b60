"""Attack `idle-connections` on the port at which members meet."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import pytest
from first_come import FirstCome
from mpc_support import PATIENCE_SECONDS

from opfl_chain.adversaries.strangers import STRANGERS, Stranger
from opfl_chain.mpc.local import reserved_addresses
from opfl_chain.mpc.session import door
from opfl_chain.mpc.session.errors import PeerUnreachable
from opfl_chain.mpc.session.meeting import Meeting, MeetingPoint
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import certificate_name
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.certificates import Authority
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.tls import TlsFiles

MEETINGS = 8
IDLE = 20
"""As many as shut the port in version 1."""
AS_BEFORE = 16
"""Callers that version 1 listened to at a time."""
LONG_SECONDS = 6000.0
"""A hundredth of it is longer than any of these tests takes."""


@dataclass(frozen=True)
class Endable(Deadline):
    """A deadline that comes at the end of a `with` block."""

    seconds: float = LONG_SECONDS
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def remaining(self) -> float:
        return 0.0 if self.ended.is_set() else super().remaining

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.ended.set()


@dataclass
class Committee:
    configs: list[PartyConfig]
    pool: ThreadPoolExecutor

    def come(self, rank: int, audit: str, deadline: Deadline) -> Future[Meeting]:
        return self.pool.submit(MeetingPoint(self.configs[rank], audit, 1, deadline).meet)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> list[TlsFiles]:
    authority = Authority.create(tmp_path_factory.mktemp("tls"))
    return [authority.issue(certificate_name(rank)) for rank in range(3)]


@pytest.fixture(params=["tls", "plain"])
def committee(request: pytest.FixtureRequest, tls: list[TlsFiles]) -> Iterator[Committee]:
    files = tls if request.param == "tls" else [None] * 3
    with reserved_addresses() as addresses, ThreadPoolExecutor(3) as pool:
        yield Committee([PartyConfig(rank, addresses, files[rank]) for rank in range(3)], pool)


def close(meeting: Meeting) -> None:
    for connection in meeting.connections.values():
        connection.close()
    for stream in (*meeting.streams.values(), *meeting.link_streams.values()):
        stream.close()


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = Deadline(PATIENCE_SECONDS)
    while not holds():
        assert not deadline.passed
        time.sleep(0.005)


@contextmanager
def attacked(committee: Committee, idle: int) -> Iterator[list[Stranger]]:
    """The attack on those who are called: members 0 and 1."""
    attack = STRANGERS["idle-connections"]
    with ExitStack() as attacks:
        yield [
            attacks.enter_context(attack(committee.configs[rank].address, idle, addresses=2))
            for rank in range(2)
        ]


def meet(committee: Committee, audit: str, strangers: list[Stranger], idle: int) -> list[Any]:
    """Have members come one after the other, each when the last one has its idle connections."""
    coming = []
    for rank in range(3):
        before = strangers[rank].opened if rank < 2 else 0
        coming.append(committee.come(rank, audit, Deadline(PATIENCE_SECONDS)))
        if rank < 2:
            wait_until(lambda stranger=strangers[rank], b=before: stranger.opened >= b + idle)
    return [each.exception() or each.result() for each in coming]


@pytest.mark.parametrize("idle", [IDLE, 4 * door.STRANGERS])
def test_members_meet_whatever_is_idle_at_their_ports(committee: Committee, idle: int) -> None:
    with attacked(committee, idle) as strangers:
        for number in range(MEETINGS if idle == IDLE else 1):
            for met in meet(committee, f"audit {number}", strangers, idle):
                assert isinstance(met, Meeting), met
                close(met)


def test_without_the_defence_idle_connections_keep_members_apart(
    committee: Committee, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "Pool", FirstCome)
    monkeypatch.setattr(door, "STRANGERS", AS_BEFORE)
    with attacked(committee, IDLE) as strangers, Endable() as called:
        waiting = committee.come(0, "audit", called)
        wait_until(lambda: strangers[0].opened >= 2 * IDLE)  # full: some were sent away again
        calling = [committee.come(rank, "audit", Deadline(2.0)) for rank in (1, 2)]
        errors = [each.exception() for each in calling]
        assert not waiting.done()
    assert all(isinstance(error, PeerUnreachable) for error in errors)
    assert errors[1].rank == 0


@pytest.mark.parametrize("committee", ["tls"], indirect=True)
def test_a_member_that_holds_idle_connections_takes_no_place_of_another(
    committee: Committee, tls: list[TlsFiles]
) -> None:
    """Member 2 authenticates itself on more connections than there are places, and says nothing."""
    context = tls[2].context(ssl.PROTOCOL_TLS_CLIENT)
    address = split_address(committee.configs[0].address)
    with ExitStack() as opened:
        coming = [committee.come(0, "audit", Deadline(PATIENCE_SECONDS))]
        for _ in range(2 * door.STRANGERS):
            plain = opened.enter_context(_connected(address))
            opened.enter_context(context.wrap_socket(plain, server_hostname=certificate_name(0)))
        coming += [committee.come(rank, "audit", Deadline(PATIENCE_SECONDS)) for rank in (1, 2)]
        for met in [each.result() for each in coming]:
            close(met)


def _connected(address: tuple[str, int]) -> socket.socket:
    deadline = Deadline(PATIENCE_SECONDS)
    while True:
        try:
            return socket.create_connection(address, PATIENCE_SECONDS)
        except ConnectionRefusedError:
            assert not deadline.passed


@pytest.mark.parametrize("committee", ["tls"], indirect=True)
def test_a_greeting_before_authentication_is_not_read(
    committee: Committee, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    arrived = door.Connection.arrived
    monkeypatch.setattr(
        door.Connection,
        "arrived",
        lambda connection: read.append(connection) or arrived(connection),
    )
    with Endable() as called:
        committee.come(0, "audit", called)
        with _connected(split_address(committee.configs[0].address)) as stranger:
            stranger.sendall(b"OPFL" + bytes(100))
            stranger.settimeout(PATIENCE_SECONDS)
            with suppress(ConnectionResetError):
                stranger.recv(1000)  # an alert, or the end
    assert not read
