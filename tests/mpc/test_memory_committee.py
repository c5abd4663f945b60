"""Sessions of three threads: the same code as over real links, without the links."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from mpc_support import BITS, POWERS, SHARES, Programs, X, Y, inputs_of, round_trips

from opfl_chain.mpc.local import (
    Committee,
    MemoryCommittee,
    committee_in_processes,
    committee_in_threads,
)
from opfl_chain.mpc.session.errors import (
    CopiesDiffer,
    ExecutableMismatch,
    InputMismatch,
    MessageInvalid,
    PeerStalled,
    ProgramMismatch,
)
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.mpc.session.session import Session
from opfl_chain.mpc.session.shares import ARITHMETIC, Share, Storage, split
from opfl_chain.mpc.session.statistics import total


def test_run_plain_computes_the_program(programs: Programs) -> None:
    with MemoryCommittee() as committee:
        assert np.array_equal(
            committee.run_plain(programs.short, {"x": X, "y": Y})["result"], POWERS
        )


def test_one_session_runs_several_programs_and_opens_their_outputs(programs: Programs) -> None:
    w = np.array([0.5, -1.0, 0.25, 3.0], np.float32)

    def action(session: Session) -> list[np.ndarray]:
        first = session.run(programs.short, inputs_of(session.rank)).outputs["result"]
        inputs = {"a": first, "b": SHARES["y"][session.rank], "w": w}
        outputs = session.run(programs.mixed, inputs).outputs
        return session.open_all([first, *outputs.values()], BITS)

    with MemoryCommittee() as committee:
        opened = committee.each(action)
    expected = [POWERS, POWERS > Y, POWERS * Y, Y ^ 3, (POWERS > Y).astype(np.int32)]
    for member in opened:
        for array, value in zip(member, expected, strict=False):
            assert np.array_equal(array, value)
            assert array.dtype == value.dtype
        assert np.allclose(member[5], POWERS * w, atol=1e-5)
        assert np.array_equal(member[6], w * 2)


def test_statistics_count_what_all_members_sent(programs: Programs) -> None:
    with MemoryCommittee() as committee:
        runs = [committee.run(programs.short, [inputs_of(r) for r in range(3)]) for _ in range(2)]
    for run in runs:
        costs = total([result.statistics for result in run])
        # Three products of four words a member.
        assert (costs.sent_bytes, costs.sent_messages) == (3 * 3 * 4 * 8, 9)
        assert costs.program == "short"
        assert costs.seconds > 0
        assert costs.peak_memory_bytes > 1 << 20
        assert costs.operations


@pytest.mark.parametrize("made", [committee_in_threads, committee_in_processes])
def test_a_committee_on_this_machine_computes_the_program(
    programs: Programs, made: Callable[[], AbstractContextManager[Committee]]
) -> None:
    with made() as committee:
        opened = committee.run_plain(programs.short, {"x": X, "y": Y})
    assert np.array_equal(opened["result"], POWERS)


@pytest.mark.parametrize(("cores", "serial"), [(2, True), (64, False)])
def test_products_take_one_thread_where_cores_are_few(
    monkeypatch: pytest.MonkeyPatch, cores: int, serial: bool
) -> None:
    """And frameworks beside SPU keep their threads."""
    openmp = ctypes.CDLL("libgomp.so.1")
    before = openmp.omp_get_max_active_levels()
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    with MemoryCommittee() as committee:
        levels = committee.each(lambda session: openmp.omp_get_max_active_levels())
    assert [level == 0 for level in levels] == [serial] * 3
    assert openmp.omp_get_max_active_levels() == before > 0


def test_procedures_get_the_runtime() -> None:
    with MemoryCommittee() as committee:
        seconds = committee.each(lambda session: round_trips(session, 3, 10))
    assert [len(member) for member in seconds] == [3, 3, 3]


WRONG_INPUTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "missing": (lambda i: i.pop("x"), "'x' of 'short': is missing"),
    "unknown": (lambda i: i.update(z=X), "'z' of 'short': is not an input"),
    "plain": (lambda i: i.update(x=X), "it is secret, and an array was given"),
    "shape": (lambda i: i.update(x=split(X[:3], BITS)[0]), r"int64 of shape \(3,\) was given"),
    "dtype": (lambda i: i.update(x=split(X / 2, BITS)[0]), r"float64 of shape \(4,\) was given"),
    "rank": (lambda i: i.update(x=SHARES["x"][1]), "share of member 1, and we are member 0"),
}


@pytest.mark.parametrize("case", WRONG_INPUTS)
def test_wrong_inputs_are_refused_by_name(programs: Programs, case: str) -> None:
    spoil, reason = WRONG_INPUTS[case]
    inputs: dict[str, Any] = dict(inputs_of(0))
    spoil(inputs)
    with MemoryCommittee() as committee, pytest.raises(InputMismatch, match=reason):
        committee.sessions[0].run(programs.short, inputs)


def test_wrong_public_inputs_are_refused_by_name(programs: Programs) -> None:
    shares = {"a": SHARES["x"][0], "b": SHARES["y"][0]}
    with MemoryCommittee() as committee:
        with pytest.raises(InputMismatch, match="'w' of 'mixed': it is public, and a share"):
            committee.sessions[0].run(programs.mixed, {**shares, "w": SHARES["x"][0]})
        with pytest.raises(InputMismatch, match="'w' of 'mixed': w"):
            nan = np.array([1, np.nan, 1, 1], np.float32)
            committee.sessions[0].run(programs.mixed, {**shares, "w": nan})


def failures(action: Callable[[Session], Any], seconds: float = 60.0) -> list[BaseException]:
    """Return the error that each member raises."""

    def caught(session: Session) -> BaseException:
        with pytest.raises(Exception) as info:
            action(session)
        return info.value

    with MemoryCommittee(seconds) as committee:
        return committee.each(caught)


def test_members_with_other_code_do_not_run(programs: Programs) -> None:
    def action(session: Session) -> None:
        executable = programs.other_short if session.rank == 2 else programs.short
        session.run(executable, inputs_of(session.rank))

    errors = failures(action)
    assert {type(error) for error in errors} == {ExecutableMismatch}
    assert "member 2 at thread_2 is about to run 'short' (code " in str(errors[0])


def test_members_with_other_programs_do_not_run(programs: Programs) -> None:
    def action(session: Session) -> None:
        executable = programs.long if session.rank == 0 else programs.short
        session.run(executable, inputs_of(session.rank))

    assert {type(error) for error in failures(action)} == {ProgramMismatch}


def test_members_with_other_public_inputs_do_not_run(programs: Programs) -> None:
    def action(session: Session) -> None:
        w = np.full(4, 2.0 if session.rank == 1 else 1.0, np.float32)
        inputs = {"a": SHARES["x"][session.rank], "b": SHARES["y"][session.rank], "w": w}
        session.run(programs.mixed, inputs)

    assert {type(error) for error in failures(action)} == {ProgramMismatch}


def test_a_member_that_does_something_else_is_named(programs: Programs) -> None:
    def action(session: Session) -> None:
        if session.rank == 1:
            for peer in (0, 2):
                session.send(peer, b"garbage")  # type: ignore[attr-defined]
            raise KeyError
        session.run(programs.short, inputs_of(session.rank))

    errors = failures(action)
    assert isinstance(errors[0], MessageInvalid)
    assert errors[0].rank == 1
    assert isinstance(errors[2], MessageInvalid)


def test_a_member_that_does_nothing_is_named(programs: Programs) -> None:
    def action(session: Session) -> None:
        if session.rank == 1:
            raise KeyError
        session.run(programs.short, inputs_of(session.rank))

    errors = failures(action, seconds=2)
    assert isinstance(errors[0], PeerStalled)
    assert errors[0].rank == 1


@pytest.mark.parametrize("component", [0, 1])
def test_an_opening_with_a_changed_copy_opens_nothing(component: int) -> None:
    def action(session: Session) -> None:
        share = SHARES["x"][session.rank]
        if session.rank == 1:
            words = share.words.copy()
            words[3, component] ^= np.uint64(1)
            share = Share(1, "int64", (4,), Storage(ARITHMETIC), words)
        session.open(share, BITS)
        raise KeyError

    errors = failures(action)
    # Members 0 and 2 lack one component each; the one that member 1 changed is detected.
    found = [error for error in errors if isinstance(error, CopiesDiffer)]
    assert len(found) == 1
    assert found[0].component == (1 + component) % 3
    assert 1 in found[0].holders


def test_an_opening_of_another_size_is_refused() -> None:
    def action(session: Session) -> None:
        array = X[:3] if session.rank == 2 else X
        session.open(split(array, BITS)[session.rank], BITS)
        raise KeyError

    assert any(isinstance(error, MessageInvalid) and error.rank == 2 for error in failures(action))


def test_agreement_with_garbage_names_the_sender() -> None:
    from opfl_chain.mpc.session.agreement import Agreement

    for garbage in (b"", b"{}", b"[1]", b"\xff", b'{"name": 1, "code": "", "public": ""}'):
        with pytest.raises(MessageInvalid, match="member 1 at there"):
            Agreement("p", "c").compare(1, "there", garbage)
    Agreement("p", "c").compare(1, "there", Agreement("p", "c").to_bytes())


def test_runtime_is_a_session() -> None:
    with MemoryCommittee() as committee:
        assert all(isinstance(session, Runtime) for session in committee.sessions)


def test_nothing_is_left_open_when_a_process_ends() -> None:
    code = "from opfl_chain.mpc.session.statistics import run_log; run_log().begin()"
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "unclosed" not in ran.stderr
