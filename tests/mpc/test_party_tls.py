"""Mutual TLS: between members, in SPU's link as well, and against those who are none."""

from __future__ import annotations

import json
import select
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mpc_support import Programs, assert_serves, outcomes, run_in_session

from opfl_chain.mpc.certificates import Authority
from opfl_chain.mpc.deadline import Deadline
from opfl_chain.mpc.errors import PeerUnreachable, TlsInvalid
from opfl_chain.mpc.local_committee import LocalCommittee, free_addresses
from opfl_chain.mpc.party import Party
from opfl_chain.mpc.probe import round_trips
from opfl_chain.mpc.seat import Seat, split_address
from opfl_chain.mpc.tls import TlsFiles, certificate_name


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def members(authority: Authority) -> list[TlsFiles]:
    return [authority.issue(certificate_name(rank)) for rank in range(3)]


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> TlsFiles:
    """The right name under another authority; it knows ours."""
    theirs = Authority.create(tmp_path_factory.mktemp("tls") / "theirs")
    files = theirs.issue(certificate_name(2))
    return TlsFiles(files.certificate, files.private_key, authority.certificate)


@pytest.fixture(scope="module")
def secure(members: list[TlsFiles]) -> Iterator[LocalCommittee]:
    with LocalCommittee(tls=members) as committee:
        yield committee


def test_members_compute_under_tls(secure: LocalCommittee, programs: Programs) -> None:
    assert_serves(secure, programs)
    with secure.session(seconds=30) as committee:
        # Longer than what a socket takes at once.
        committee.each(lambda session: session.call(round_trips, count=2, size=2 << 20))


def outcomes_with_impostor(
    secure: LocalCommittee, programs: Programs, files: TlsFiles | None
) -> list[Any]:
    """Members 0 and 1 as they are, and a member 2 that has other files."""
    addresses = secure.parties[2].seat.addresses
    with Party(Seat(2, addresses, files)) as impostor:
        impostor.wait_until_warm()
        secure.wait_until_warm()
        return outcomes(
            [
                run_in_session(party, programs.short, "impostor", join_seconds=1.5)
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
    """Member 1 has a certificate of the authority, and not one for member 2."""
    results = outcomes_with_impostor(secure, programs, members[1])
    for result in results[:2]:
        assert isinstance(result, PeerUnreachable)
        assert "the certificate of member 2 is not for member-2" in str(result)
    assert "the certificate of member 2 is not for member-2" in str(results[2])


@contextmanager
def bare_links(
    files: Sequence[TlsFiles], seconds: float
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """SPU's link between three processes: its addresses, and what they say within the time."""
    addresses = free_addresses()
    members = [
        subprocess.Popen(
            [
                *(sys.executable, Path(__file__).with_name("link_member.py")),
                json.dumps(Seat(rank, addresses, each).to_json()),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for rank, each in enumerate(files)
    ]
    silent, said = {member.stdout for member in members}, []
    deadline = Deadline(seconds)
    try:
        while silent and not deadline.passed:
            for output in select.select(list(silent), [], [], deadline.remaining)[0]:
                said.append(output.readline().decode())
                silent.discard(output)
        yield addresses, said
    finally:
        for member in members:
            member.kill()
            member.communicate()


def test_spus_own_link_refuses_a_stranger(members: list[TlsFiles], stranger: TlsFiles) -> None:
    with bare_links([*members[:2], stranger], 3.0) as (_, said):
        assert not any("linked" in line for line in said)


def test_spus_own_link_demands_a_certificate(members: list[TlsFiles], authority: Authority) -> None:
    """Whoever connects to the link's port without one is not let in."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.check_hostname = False
    with bare_links(members, 20.0) as (addresses, said):
        assert said == ["linked\n"] * 3
        with socket.create_connection(split_address(addresses[0]), 5) as plain:
            try:
                with context.wrap_socket(plain) as stream:
                    stream.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    answer = stream.recv(100)
            except (ssl.SSLError, ConnectionError):
                answer = b""
    assert answer == b""


def test_files_that_do_not_fit_are_refused(members: list[TlsFiles], tmp_path: Path) -> None:
    one, other = members[:2]
    with pytest.raises(TlsInvalid, match="does not exist"):
        TlsFiles(tmp_path / "none.pem", one.private_key, one.authority)
    with pytest.raises(TlsInvalid, match="key values mismatch"):
        TlsFiles(one.certificate, other.private_key, one.authority)
    with pytest.raises(TlsInvalid):
        TlsFiles(one.certificate, one.private_key, one.private_key)


def test_addresses_off_loopback_are_taken_with_tls(members: list[TlsFiles]) -> None:
    seat = Seat(0, ("10.0.0.1:1", "10.0.0.2:1", "peer.example:1"), members[0])
    assert Seat.from_json(seat.to_json()) == seat
