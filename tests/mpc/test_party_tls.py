"""Mutual TLS between members, including SPU's link, and against strangers."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from mpc_support import (
    PATIENCE_SECONDS,
    AllBegun,
    Programs,
    assert_serves,
    inputs_of,
    outcomes,
    round_trips,
    run_in_session,
)

from opfl_chain.adversaries.strangers import STRANGERS
from opfl_chain.mpc.local import LocalCommittee
from opfl_chain.mpc.session.codec import decode_value, encode_value
from opfl_chain.mpc.session.errors import PeerLost, PeerUnreachable, RuntimeDied
from opfl_chain.mpc.session.meeting import MeetingPoint
from opfl_chain.mpc.session.party import Party
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import certificate_name
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.certificates import Authority
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.errors import TlsInvalid
from opfl_chain.transport.tls import TlsFiles

LISTEN = "0A"
"""State code in the kernel's socket tables."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def members(authority: Authority) -> list[TlsFiles]:
    return [authority.issue(certificate_name(rank)) for rank in range(3)]


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> TlsFiles:
    """Files with the right name, signed by another authority, that trust our authority."""
    theirs = Authority.create(tmp_path_factory.mktemp("tls") / "theirs")
    files = theirs.issue(certificate_name(2))
    return TlsFiles(files.certificate, files.private_key, authority.certificate)


@pytest.fixture(scope="module")
def secure(members: list[TlsFiles]) -> Iterator[LocalCommittee]:
    with LocalCommittee(tls=members) as committee:
        yield committee


def test_members_compute_under_tls(secure: LocalCommittee, programs: Programs) -> None:
    assert_serves(secure, programs)
    with secure.session(seconds=PATIENCE_SECONDS) as committee:
        # Longer than a socket's buffer.
        committee.each(lambda session: round_trips(session, 2, 2 << 20))


def outcomes_with_impostor(
    secure: LocalCommittee, programs: Programs, files: TlsFiles | None
) -> list[Any]:
    """Run a session of members 0 and 1 with a member 2 that has other files."""
    addresses = secure.parties[2].config.addresses
    with Party(PartyConfig(2, addresses, files)) as impostor:
        impostor.wait_until_warm()
        secure.wait_until_warm()
        return outcomes(
            [
                run_in_session(party, programs.short, "impostor", join_seconds=5.0)
                for party in (*secure.parties[:2], impostor)
            ]
        )


def test_a_certificate_of_another_authority_is_refused(
    secure: LocalCommittee, programs: Programs, stranger: TlsFiles
) -> None:
    results = outcomes_with_impostor(secure, programs, stranger)
    for result in results[:2]:
        assert isinstance(result, PeerUnreachable)
        assert result.rank == 2
        assert "certificate verify failed" in str(result)
    assert isinstance(results[2], PeerUnreachable)
    assert_serves(secure, programs)


def test_a_member_without_a_certificate_is_refused(
    secure: LocalCommittee, programs: Programs
) -> None:
    results = outcomes_with_impostor(secure, programs, None)
    assert all(isinstance(result, PeerUnreachable) for result in results)
    assert [result.rank for result in results[:2]] == [2, 2]


def test_a_member_cannot_pass_for_another(
    secure: LocalCommittee, programs: Programs, members: list[TlsFiles]
) -> None:
    """Member 1 has a certificate of the authority, but not one for member 2."""
    results = outcomes_with_impostor(secure, programs, members[1])
    assert all(isinstance(result, PeerUnreachable) for result in results)
    for result in (results[0], results[2]):
        assert "the certificate of member 2 is not for member-2" in str(result)
    assert "its certificate is for member-1, which is not expected to call" in str(results[1])


# --- SPU's link


def sockets_of(party: Party) -> set[str]:
    """Return the inodes of the open sockets of a member's SPU process."""
    found = set()
    for descriptor in Path(f"/proc/{party.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(descriptor.readlink().name)
    return {name.removeprefix("socket:[").rstrip("]") for name in found if "socket" in name}


def listening_of(party: Party) -> set[str]:
    tables = [Path(f"/proc/{party.pid}/net/{name}") for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return {row[9] for row in rows if row[3] == LISTEN} & sockets_of(party)


@linux
def test_no_port_is_open_while_members_compute(secure: LocalCommittee, programs: Programs) -> None:
    with secure.session(seconds=PATIENCE_SECONDS) as committee:
        assert not any(listening_of(party) for party in secure.parties)
        committee.run(programs.short, [inputs_of(rank) for rank in range(3)])
    with LocalCommittee() as plain, plain.session(seconds=PATIENCE_SECONDS):
        assert all(listening_of(party) for party in plain.parties)  # proves that the check works


@linux
def test_a_session_leaves_no_socket_open(secure: LocalCommittee, programs: Programs) -> None:
    assert_serves(secure, programs)
    before = [len(sockets_of(party)) for party in secure.parties]
    for _ in range(2):
        assert_serves(secure, programs)
    assert [len(sockets_of(party)) for party in secure.parties] == before


def test_a_member_that_dies_is_named(secure: LocalCommittee, programs: Programs) -> None:
    secure.wait_until_warm()
    pid = secure.parties[1].pid
    assert pid is not None
    begun = AllBegun(lambda: os.kill(pid, signal.SIGKILL))
    results = outcomes(
        [run_in_session(party, programs.long, "killed", begun) for party in secure.parties]
    )
    assert isinstance(results[1], RuntimeDied)
    for result in (results[0], results[2]):
        assert isinstance(result, PeerLost)
        assert result.rank == 1
    assert_serves(secure, programs)


def test_a_member_whose_link_breaks_is_lost(secure: LocalCommittee, programs: Programs) -> None:
    """The member still seems alive, so SPU would wait for it."""
    secure.wait_until_warm()
    config = secure.parties[2].config

    def break_link() -> None:
        meeting = MeetingPoint(
            config, "broken", split_address(config.address)[1], Deadline(60)
        ).meet()
        for link in meeting.link_streams.values():
            link.close()
        with suppress(OSError):
            while True:
                for connection in meeting.connections.values():
                    connection.send_at_once({"pulse": True})
                time.sleep(0.2)
        for stream in (
            *meeting.streams.values(),
            *(c.stream for c in meeting.connections.values()),
        ):
            stream.close()

    sessions = [run_in_session(party, programs.short, "broken") for party in secure.parties[:2]]
    results = outcomes([*sessions, break_link])
    for result in results[:2]:
        assert isinstance(result, PeerLost)
        assert result.rank == 2
    assert_serves(secure, programs)


# --- files


def test_files_that_do_not_fit_are_refused(members: list[TlsFiles], tmp_path: Path) -> None:
    one, other = members[:2]
    with pytest.raises(TlsInvalid, match="does not exist"):
        TlsFiles(tmp_path / "none.pem", one.private_key, one.authority)
    with pytest.raises(TlsInvalid, match="key values mismatch"):
        TlsFiles(one.certificate, other.private_key, one.authority)
    with pytest.raises(TlsInvalid):
        TlsFiles(one.certificate, one.private_key, one.private_key)


def test_addresses_off_loopback_are_taken_with_tls(members: list[TlsFiles]) -> None:
    config = PartyConfig(0, ("10.0.0.1:1", "10.0.0.2:1", "peer.example:1"), members[0])
    assert decode_value(encode_value(config, []), ()) == config


# --- strangers


def test_idle_connections_do_not_keep_members_from_computing(
    secure: LocalCommittee, programs: Programs
) -> None:
    attack = STRANGERS["idle-connections"]
    with ExitStack() as attacks:
        for party in secure.parties:
            attacks.enter_context(attack(party.config.address, 200, addresses=10))
        for _ in range(2):
            assert_serves(secure, programs)
