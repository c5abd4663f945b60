"""Failures of a party, seen by the others: it dies, stalls, is absent or sends garbage.

Every test ends with a successful session of the same committee.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import cheating_member
import pytest
from mpc_support import (
    PATIENCE_SECONDS,
    AllBegun,
    Programs,
    assert_serves,
    inputs_of,
    outcomes,
    run_in_session,
)

from opfl_chain.mpc.local import LocalCommittee
from opfl_chain.mpc.session import party as party_module
from opfl_chain.mpc.session.agreement import Agreement
from opfl_chain.mpc.session.codec import encode_value
from opfl_chain.mpc.session.errors import (
    AddressTaken,
    DeadlineExceeded,
    ExecutableMismatch,
    MessageInvalid,
    PeerLost,
    PeerStalled,
    PeerUnreachable,
    RuntimeDied,
    SessionError,
)
from opfl_chain.mpc.session.party import Party
from opfl_chain.transport.addresses import split_address

JOIN_SECONDS = 5.0
"""Time in which the parties that do come meet, also on a busy machine."""


def strike(
    local: LocalCommittee, programs: Programs, number: signal.Signals, **limits: float
) -> tuple[list[Any], float]:
    """Send a signal to party 1 in the middle of a run. Return outcomes, and the seconds until the
    survivors ended."""
    ended: list[float] = []
    struck: list[float] = []
    assert_serves(local, programs)  # warms all parties up
    pid = local.parties[1].pid
    assert pid is not None

    def survivor(action: Callable[[], Any]) -> Callable[[], Any]:
        def timed() -> Any:
            try:
                return action()
            finally:
                ended.append(time.monotonic())

        return timed

    def send_signal() -> None:
        struck.append(time.monotonic())
        os.kill(pid, number)

    begun = AllBegun(send_signal)
    actions = [
        run_in_session(party, programs.long, f"{number.name}", begun, **limits)
        for party in local.parties
    ]
    actions[0], actions[2] = survivor(actions[0]), survivor(actions[2])
    return outcomes(actions), max(ended) - struck[0]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_party_that_dies_is_named_at_once(
    local: LocalCommittee, programs: Programs, number: signal.Signals
) -> None:
    results, seconds = strike(local, programs, number, seconds=PATIENCE_SECONDS)
    for result in (results[0], results[2]):
        assert isinstance(result, PeerLost)
        assert (result.rank, result.address) == (1, local.parties[1].config.address)
    assert isinstance(results[1], RuntimeDied)
    assert number.name in str(results[1])
    assert seconds < PATIENCE_SECONDS / 5
    assert_serves(local, programs)


def test_a_party_that_is_suspended_is_named(local: LocalCommittee, programs: Programs) -> None:
    results, seconds = strike(local, programs, signal.SIGSTOP, seconds=15, stall_seconds=5)
    for result in (results[0], results[2]):
        assert isinstance(result, PeerStalled)
        assert result.rank == 1
        assert 5 <= result.seconds < 15
    assert isinstance(results[1], DeadlineExceeded)  # its own member waits until the deadline
    assert seconds < 15
    assert_serves(local, programs)


def test_a_party_that_is_suspended_shortly_is_forgiven(
    local: LocalCommittee, programs: Programs
) -> None:
    pid = local.parties[1].pid
    assert pid is not None
    with local.session(seconds=PATIENCE_SECONDS, stall_seconds=60) as committee:
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (pid, signal.SIGCONT)).start()
        committee.run(programs.short, [inputs_of(rank) for rank in range(3)])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_party_that_is_lost_at_the_very_end_does_not_keep_the_others(
    local: LocalCommittee, programs: Programs, number: signal.Signals, monkeypatch: Any
) -> None:
    """They have their results, and leave long before the session's deadline."""
    monkeypatch.setattr(party_module, "LEAVE_SECONDS", 2.0)
    barrier = threading.Barrier(3)

    def action(party: Party) -> Any:
        with party.session("the end", seconds=2 * PATIENCE_SECONDS) as session:
            result = session.run(programs.short, inputs_of(party.rank))
            barrier.wait(PATIENCE_SECONDS)
            if party.rank == 1 and party.pid is not None:
                os.kill(party.pid, number)
            barrier.wait(PATIENCE_SECONDS)
            return result.statistics.program

    local.wait_until_warm()
    started = time.monotonic()
    results = outcomes([partial(action, party) for party in local.parties])
    assert results == ["short"] * 3
    assert time.monotonic() - started < PATIENCE_SECONDS
    assert_serves(local, programs)


def test_a_run_that_takes_too_long_ends_at_the_deadline(
    local: LocalCommittee, programs: Programs
) -> None:
    local.wait_until_warm()
    started = time.monotonic()
    results = outcomes(
        [run_in_session(party, programs.long, "long", seconds=8.0) for party in local.parties]
    )
    assert 7 < time.monotonic() - started < PATIENCE_SECONDS
    assert {type(result) for result in results} == {DeadlineExceeded}
    assert "the members ran Runtime.run" in str(results[0])
    assert_serves(local, programs)


def test_a_party_with_another_executable_is_named(
    local: LocalCommittee, programs: Programs
) -> None:
    results = outcomes(
        [
            run_in_session(party, programs.other_short if party.rank == 1 else programs.short, "x")
            for party in local.parties
        ]
    )
    assert {type(result) for result in results} == {ExecutableMismatch}
    assert (results[0].rank, results[2].rank) == (1, 1)
    assert_serves(local, programs)


# --- parties that do not meet


def test_a_party_that_does_not_come_is_named(local: LocalCommittee, programs: Programs) -> None:
    for absent in range(3):
        local.wait_until_warm()
        present = [party for party in local.parties if party.rank != absent]
        results = outcomes(
            [
                run_in_session(party, programs.short, f"absent {absent}", join_seconds=JOIN_SECONDS)
                for party in present
            ]
        )
        for result in results:
            assert isinstance(result, PeerUnreachable)
            assert (result.rank, result.address) == (absent, local.parties[absent].config.address)
    assert_serves(local, programs)


def test_a_party_at_another_audit_is_told_so(local: LocalCommittee, programs: Programs) -> None:
    local.wait_until_warm()
    results = outcomes(
        [
            run_in_session(
                party, programs.short, f"audit {party.rank == 1}", join_seconds=JOIN_SECONDS
            )
            for party in local.parties
        ]
    )
    assert all(isinstance(result, PeerUnreachable) for result in results)
    assert "it is at audit 'audit False', we are at 'audit True'" in str(results[1])
    assert_serves(local, programs)


def test_a_party_may_come_late(local: LocalCommittee, programs: Programs) -> None:
    def late() -> Any:
        time.sleep(0.7)
        return run_in_session(local.parties[0], programs.short, "late")()

    actions = [run_in_session(party, programs.short, "late") for party in local.parties]
    results = outcomes([late, *actions[1:]])
    assert all(result.outputs for result in results)


@contextmanager
def stranger(address: str, answer: bytes) -> Iterator[None]:
    """Listen at a member's address and send `answer` to all callers."""
    listener = socket.create_server(split_address(address))
    done = threading.Event()

    def serve() -> None:
        listener.settimeout(0.1)
        while not done.is_set():
            try:
                stream, _ = listener.accept()
            except TimeoutError:
                continue
            with stream:
                stream.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        listener.close()


def test_something_else_at_a_peers_address_is_reported(
    local: LocalCommittee, programs: Programs
) -> None:
    local.wait_until_warm()
    address = local.parties[0].config.address
    with stranger(address, b"HTTP/1.1 400 Bad Request\r\n\r\n"):
        results = outcomes(
            [
                run_in_session(party, programs.short, "stranger", join_seconds=JOIN_SECONDS)
                for party in local.parties
            ]
        )
    assert isinstance(results[0], AddressTaken)
    assert address in str(results[0])
    for result in results[1:]:
        assert isinstance(result, PeerUnreachable)
        assert result.rank == 0
        assert "the message begins with b'HTTP' instead of b'OPFL'" in str(result)
    assert_serves(local, programs)


def test_strangers_that_call_keep_nobody_waiting(local: LocalCommittee, programs: Programs) -> None:
    """Garbage, silence, and a greeting of a member that does not exist, while members meet."""
    done = threading.Event()
    greeting = b'{"header": {"version": 1, "rank": 9, "audit": "", "link_port": 1, "nonce": ""}'
    frame = b"OPFL" + (len(greeting) + 13).to_bytes(4, "big") + bytes(8) + greeting
    silent: list[socket.socket] = []

    def pester() -> None:
        while not done.is_set():
            for party in local.parties:
                try:
                    stream = socket.create_connection(split_address(party.config.address), 0.2)
                except OSError:
                    continue
                silent.append(stream)
                with_garbage = (b"\x16\x03\x01" * 50, frame + b', "blobs": []}', b"")
                try:
                    stream.sendall(with_garbage[len(silent) % 3])
                except OSError:
                    continue
            time.sleep(0.02)

    thread = threading.Thread(target=pester)
    thread.start()
    try:
        for _ in range(3):
            assert_serves(local, programs)
    finally:
        done.set()
        thread.join()
        for stream in silent:
            stream.close()
    assert silent


# --- a member that cheats


def cheat(local: LocalCommittee, programs: Programs, behaviour: str) -> list[Any]:
    """Return the outcomes of members 0 and 1 with a member 2 of this behaviour."""
    local.wait_until_warm()
    config = json.dumps(encode_value(local.parties[2].config, []))
    agreement = Agreement.to_run(programs.short, inputs_of(2)).to_bytes().decode()
    member_2 = subprocess.Popen(
        [sys.executable, cheating_member.__file__, behaviour, config, agreement],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert member_2.stdout is not None
        assert member_2.stdout.readline() == b"here\n"
        limits = {"seconds": 20.0, "join_seconds": 10.0, "stall_seconds": 5.0}
        return outcomes(
            [
                run_in_session(party, programs.short, cheating_member.AUDIT, **limits)
                for party in local.parties[:2]
            ]
        )
    finally:
        member_2.kill()
        member_2.communicate()


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ("say_nothing", PeerStalled),
        # Lost or unreachable, depending on whether the others had met by then.
        ("go_away", (PeerLost, PeerUnreachable)),
        ("send_garbage_to_the_heartbeat", (PeerLost, PeerUnreachable)),
        ("send_garbage_for_an_agreement", MessageInvalid),
        ("announce_a_huge_message", MessageInvalid),
    ],
)
def test_a_member_that_misbehaves_is_named(
    local: LocalCommittee, programs: Programs, behaviour: str, kind: Any
) -> None:
    for result in cheat(local, programs, behaviour):
        assert isinstance(result, kind), result
        assert result.rank == 2


def test_garbage_in_the_middle_of_a_run_ends_it(local: LocalCommittee, programs: Programs) -> None:
    """SPU may raise, hang or crash, but only in each member's SPU process."""
    for result in cheat(local, programs, "send_garbage_to_spu"):
        assert isinstance(result, SessionError), result
    assert_serves(local, programs)
