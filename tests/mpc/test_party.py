"""Three parties in separate processes, without failures."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from mpc_support import (
    BITS,
    PATIENCE_SECONDS,
    POWERS,
    Programs,
    X,
    Y,
    assert_serves,
    inputs_of,
    outcomes,
    round_trips,
)

from opfl_chain.mpc.audit.judge import decide_openings
from opfl_chain.mpc.local import LocalCommittee, MemoryCommittee, free_addresses, reserved_addresses
from opfl_chain.mpc.session.errors import (
    AddressTaken,
    InputMismatch,
    PeerFailed,
    PeerLost,
    ProgramFailed,
    SessionClosed,
)
from opfl_chain.mpc.session.party import Party
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.mpc.session.session import Session
from opfl_chain.mpc.session.statistics import total
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline
from opfl_chain.transport.errors import AddressInvalid, TlsRequired
from opfl_chain.transport.server import HttpServer


def test_parties_compute_what_threads_compute(local: LocalCommittee, programs: Programs) -> None:
    inputs = {"a": X, "b": Y, "w": np.array([0.5, -1.0, 0.25, 3.0], np.float32)}
    with local.session(seconds=PATIENCE_SECONDS) as committee:
        opened = committee.run_plain(programs.mixed, inputs)
    with MemoryCommittee() as committee:
        expected = committee.run_plain(programs.mixed, inputs)
    for name, array in expected.items():
        assert np.allclose(opened[name], array, atol=1e-6)
        assert opened[name].dtype == array.dtype


def test_statistics_are_those_of_threads(local: LocalCommittee, programs: Programs) -> None:
    inputs = [inputs_of(rank) for rank in range(3)]
    with local.session(seconds=PATIENCE_SECONDS) as committee:
        results = committee.run(programs.short, inputs)
    costs = total([result.statistics for result in results])
    assert (costs.sent_bytes, costs.sent_messages) == (3 * 3 * 4 * 8, 9)
    assert all(1 << 20 < each.statistics.peak_memory_bytes < 1 << 30 for each in results)


def test_the_process_stays_between_sessions(local: LocalCommittee, programs: Programs) -> None:
    assert_serves(local, programs)
    pids = [party.pid for party in local.parties]
    for _ in range(3):
        assert_serves(local, programs)
    assert [party.pid for party in local.parties] == pids


def test_shares_pass_from_program_to_program(local: LocalCommittee, programs: Programs) -> None:
    def action(session: Session) -> np.ndarray:
        inputs = inputs_of(session.rank)
        for _ in range(2):
            inputs["x"] = session.run(programs.short, inputs).outputs["result"]
        return session.open(inputs["x"], BITS)

    with local.session(seconds=PATIENCE_SECONDS) as committee:
        for opened in committee.each(action):
            assert np.array_equal(opened, X * Y**6)


def test_procedures_run_beside_the_link(local: LocalCommittee) -> None:
    with local.session(seconds=PATIENCE_SECONDS) as committee:
        for size in (8, 3 << 20):  # longer than any buffer, from all members at once
            seconds = committee.each(lambda s, size=size: round_trips(s, 3, size))
            assert [len(member) for member in seconds] == [3, 3, 3]


def test_a_restarted_party_finds_the_others(programs: Programs) -> None:
    addresses = free_addresses()
    with LocalCommittee(addresses) as local:
        assert_serves(local, programs)
        local.parties[1].close()
        with pytest.raises(SessionClosed):
            local.parties[1].session("a", seconds=5)
        with Party(PartyConfig(1, addresses)) as again:
            local.parties = (local.parties[0], again, local.parties[2])
            assert_serves(local, programs)


def test_a_reserved_address_is_for_its_server_alone() -> None:
    with reserved_addresses(1) as (address,):
        with HttpServer(address, []):
            pass
        with socket.socket() as another, pytest.raises(OSError, match="in use"):
            another.bind(split_address(address))
    with socket.socket() as another:
        another.bind(split_address(address))


def test_a_process_that_died_between_sessions_is_replaced(
    local: LocalCommittee, programs: Programs
) -> None:
    pid = local.parties[2].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert_serves(local, programs)


def test_the_process_has_no_jax() -> None:
    script = (
        "import sys, opfl_chain.mpc.session.process\n"
        "print([name for name in ('jax', 'torch', 'spu', 'pydantic') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_the_process_ends_with_its_member() -> None:
    script = (
        "import os, signal\n"
        "from opfl_chain.mpc.session.party import Party\n"
        "from opfl_chain.mpc.session.party_config import PartyConfig\n"
        f"party = Party(PartyConfig(0, {free_addresses()}))\n"
        "print(party.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    pid, deadline = int(found.stdout), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} is still there")


# --- mistakes of a caller


@pytest.mark.parametrize(
    ("procedure", "arguments", "reason"),
    [
        (decide_openings, {"trees": []}, "ValueError: need at least one array"),
        (decide_openings, {"trees": [1]}, r"argument 'trees'\[0\] is of type int, expected Tree"),
        (Deadline, {}, "TypeError: Deadline cannot be sent to another process"),
    ],
)
def test_a_procedure_that_fails_says_why(
    local: LocalCommittee, programs: Programs, procedure: Any, arguments: Any, reason: str
) -> None:
    with (
        pytest.raises(ProgramFailed, match=reason),
        local.session(seconds=20) as committee,
    ):
        committee.each(lambda session: session.call(procedure, **arguments))
    assert_serves(local, programs)


def test_a_wrong_input_is_refused_and_the_peers_are_told(
    local: LocalCommittee, programs: Programs
) -> None:
    def action(party: Party) -> None:
        with party.session("wrong input", seconds=20) as session:
            inputs = inputs_of(party.rank)
            if party.rank == 1:
                inputs["x"] = inputs_of(2)["x"]
            session.run(programs.short, inputs)

    errors = outcomes([lambda p=party: action(p) for party in local.parties])
    assert isinstance(errors[1], InputMismatch)
    for error in (errors[0], errors[2]):
        assert isinstance(error, PeerFailed)
        assert error.rank == 1
        assert "share of member 2, and we are member 1" in str(error)
    assert_serves(local, programs)


def test_a_caller_that_gives_up_frees_the_others(local: LocalCommittee, programs: Programs) -> None:
    def action(party: Party) -> None:
        with party.session("given up", seconds=20) as session:
            if party.rank == 0:
                raise KeyError
            session.run(programs.short, inputs_of(party.rank))

    errors = outcomes([lambda p=party: action(p) for party in local.parties])
    assert isinstance(errors[0], KeyError)
    assert all(isinstance(error, PeerLost) and error.rank == 0 for error in errors[1:])
    assert_serves(local, programs)


def test_a_session_is_used_while_it_lasts(local: LocalCommittee, programs: Programs) -> None:
    with local.session(seconds=PATIENCE_SECONDS) as committee:
        with pytest.raises(SessionClosed, match="still under way"):
            local.parties[0].session("another", seconds=5)
        session = committee.sessions[0]
    with pytest.raises(SessionClosed, match="it was closed"):
        session.run(programs.short, inputs_of(0))


def test_a_function_that_another_process_cannot_find_is_refused(local: LocalCommittee) -> None:
    def inner(runtime: Runtime) -> None:
        del runtime

    with local.session(seconds=PATIENCE_SECONDS) as committee:
        for procedure in (inner, os.getcwd):
            with pytest.raises(ProgramFailed, match="named functions of modules of opfl_chain"):
                committee.sessions[0].call(procedure)
    with local.session(seconds=PATIENCE_SECONDS) as committee:
        results = committee.each(lambda session: round_trips(session, 1, 1))
    assert len(results) == 3


def test_an_address_that_is_taken_is_found_at_once() -> None:
    addresses = free_addresses()
    with (
        socket.create_server(split_address(addresses[1])),
        pytest.raises(AddressTaken, match=addresses[1]),
    ):
        Party(PartyConfig(1, addresses))


def test_an_address_is_taken_over_from_a_process_that_ends_late() -> None:
    addresses = free_addresses()
    predecessor = socket.create_server(split_address(addresses[1]))
    ending = threading.Timer(0.5, predecessor.close)
    ending.start()
    with Party(PartyConfig(1, addresses), takeover_seconds=120) as party:
        assert party.rank == 1
    ending.join()


def test_link_ports_are_of_the_range() -> None:
    first = split_address(free_addresses(1)[0])[1]
    config = PartyConfig(0, free_addresses(), link_ports=(first, first + 1))
    with config.reserve_link_port() as holder:
        assert holder.getsockname()[1] in (first, first + 1)
    with (
        socket.create_server(("127.0.0.1", first)),
        pytest.raises(AddressTaken, match=f"ports {first} to {first}"),
    ):
        PartyConfig(0, free_addresses(), link_ports=(first, first)).reserve_link_port()


@pytest.mark.parametrize(
    ("addresses", "kind", "reason"),
    [
        (("127.0.0.1:1", "127.0.0.1:2"), AddressInvalid, "must be 3 addresses"),
        (("127.0.0.1", "a:1", "b:1"), AddressInvalid, "'127.0.0.1' has no port"),
        (("127.0.0.1:0", "a:1", "b:1"), AddressInvalid, "from 1 to 65535"),
        (("::1:80", "a:1", "b:1"), AddressInvalid, "without brackets"),
        (("127.0.0.1:5",) * 3, AddressInvalid, "different from each other"),
        (("127.0.0.1:1", "127.0.0.1:2", "10.0.0.1:3"), TlsRequired, "10.0.0.1:3 is not a loopback"),
        (("localhost:1", "[::1]:2", "peer.example:3"), TlsRequired, "peer.example:3"),
    ],
)
def test_addresses_are_checked(
    addresses: tuple[str, ...], kind: type[Exception], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        PartyConfig(0, addresses)


def test_powers_are_what_the_short_program_computes() -> None:
    assert POWERS.tolist() == [-8, 0, 64, 250]
