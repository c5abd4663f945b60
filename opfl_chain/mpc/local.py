"""Committees on this machine: three members, driven from one process.

`committee_in_processes` runs each member's SPU in a process of its own, as members of a job do;
`committee_in_threads` runs all in this process, which starts faster. Both yield a `Committee`.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from opfl_chain.mpc.session.channels import MemoryChannels
from opfl_chain.mpc.session.errors import PeerError
from opfl_chain.mpc.session.executable import Executable, Visibility
from opfl_chain.mpc.session.libspu import libspu
from opfl_chain.mpc.session.party import Party
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import MEMBERS, Rank
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.mpc.session.session import RunResult, Session, SessionInput
from opfl_chain.mpc.session.shares import Words, split
from opfl_chain.mpc.session.statistics import SharedRunLog
from opfl_chain.system.closing import Closing
from opfl_chain.transport.tls import TlsFiles

T = TypeVar("T")
_HOST = "127.0.0.1"
_PORTS = range(12_000, 32_000)
_THREADS_OF_A_PRODUCT = 4
_OPENMP = "libgomp.so.1"
_numbers = itertools.count()
_RECV_SECONDS = 120.0
_JOIN_SECONDS = 300.0
_STALL_SECONDS = 60.0
"""Parties on one machine are started together: one that is late or silent is only slow."""


class Committee:
    """All three members' sessions."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.sessions = tuple(sessions)

    def each(self, action: Callable[[Session], T]) -> list[T]:
        """Run an action for all members in parallel and return their results.

        On failure, raises the original error rather than the `PeerError` of a member that lost a
        peer to it.
        """
        return in_parallel([lambda s=session: action(s) for session in self.sessions])  # type: ignore[misc]

    def run(
        self, executable: Executable, inputs: Sequence[Mapping[str, SessionInput]]
    ) -> list[RunResult]:
        """Run an executable; `inputs` are by member."""
        return self.each(lambda session: session.run(executable, inputs[session.rank]))

    def run_plain(self, executable: Executable, inputs: Mapping[str, Words]) -> dict[str, Words]:
        """Share the secret inputs, run the program, and return all outputs, opened."""
        fraction_bits = executable.options.fraction_bits
        members: list[dict[str, SessionInput]] = [{} for _ in range(MEMBERS)]
        for declared in executable.inputs:
            value = inputs[declared.name]
            public = declared.visibility is Visibility.PUBLIC
            parts: Sequence[SessionInput] = (
                [value] * MEMBERS if public else split(value, fraction_bits)
            )
            for member, part in zip(members, parts, strict=True):
                member[declared.name] = part

        def run_and_open(session: Session) -> list[Words]:
            outputs = session.run(executable, members[session.rank]).outputs
            return session.open_all(list(outputs.values()), fraction_bits)

        opened = self.each(run_and_open)[0]
        return {each.name: array for each, array in zip(executable.outputs, opened, strict=True)}


def in_parallel(actions: Sequence[Callable[[], T]]) -> list[T]:
    """Run actions in threads until all have ended.

    Ctrl-C does not wait for the threads: the interrupted caller ends the sessions they wait for.
    """
    futures: list[Future[T]] = [Future() for _ in actions]
    threads = [
        threading.Thread(target=_settle, args=each, daemon=True)
        for each in zip(futures, actions, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [error for future in futures if (error := future.exception())]
    if errors:
        raise next((error for error in errors if not isinstance(error, PeerError)), errors[0])
    return [future.result() for future in futures]


def _settle(future: Future[T], action: Callable[[], T]) -> None:
    try:
        future.set_result(action())
    except BaseException as error:  # noqa: BLE001 - raised when the result is read
        future.set_exception(error)


@contextmanager
def reserved_addresses(count: int = MEMBERS) -> Iterator[tuple[str, ...]]:
    """Yield free addresses on loopback, which are handed to nobody else while the context lasts.

    Servers can listen at them meanwhile. Their ports are below those of outgoing connections, one
    of which could otherwise take the port of a process that is restarted.
    """
    found: list[str] = []
    with ExitStack() as stack:
        while len(found) < count:
            port = secrets.choice(_PORTS)
            holder = stack.enter_context(socket.socket())
            try:
                holder.bind((_HOST, port))
            except OSError:
                continue
            # Set only now: it would also let us bind a port that another holds in this way.
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.append(f"{_HOST}:{port}")
        yield tuple(found)


def free_addresses(count: int = MEMBERS) -> tuple[str, ...]:
    """Return addresses on loopback that are free at the moment."""
    with reserved_addresses(count) as found:
        return found


class LocalCommittee(Closing):
    """Three parties in processes, which hold one session after the other.

    `with LocalCommittee() as local, local.session(seconds=60) as committee: ...`

    `start` creates a party; override it to start parties in another network namespace.
    """

    def __init__(
        self,
        addresses: tuple[str, ...] | None = None,
        tls: Sequence[TlsFiles | None] = (None,) * MEMBERS,
        start: Callable[[PartyConfig], Party] = Party,
    ) -> None:
        addresses = addresses or free_addresses()
        self.parties = tuple(
            start(PartyConfig(rank, addresses, tls[rank])) for rank in range(MEMBERS)
        )

    def wait_until_warm(self) -> None:
        for party in self.parties:
            party.wait_until_warm()

    @contextmanager
    def session(
        self,
        audit: str | None = None,
        *,
        seconds: float,
        join_seconds: float = _JOIN_SECONDS,
        stall_seconds: float = _STALL_SECONDS,
    ) -> Iterator[Committee]:
        """Open a session of all three parties."""
        name = audit or f"local-{os.getpid()}-{next(_numbers)}"
        sessions = in_parallel(
            [
                lambda party=party: party.session(  # type: ignore[misc]
                    name, seconds=seconds, join_seconds=join_seconds, stall_seconds=stall_seconds
                )
                for party in self.parties
            ]
        )
        try:
            yield Committee(sessions)
        except BaseException:
            for party in self.parties:
                party.abandon()
            raise
        in_parallel([session.close for session in sessions])

    def close(self) -> None:
        for party in self.parties:
            party.close()


@contextmanager
def committee_in_processes(seconds: float = 600.0) -> Iterator[Committee]:
    """`with committee_in_processes() as committee: committee.each(...)`, for one session."""
    with LocalCommittee() as local, local.session(seconds=seconds) as committee:
        yield committee


class MemoryCommittee(Committee, Closing):
    """Three members in threads of this process.

    They share the process's log, so one of them reports the traffic of all three.
    """

    def __init__(self, recv_seconds: float = _RECV_SECONDS) -> None:
        name = f"memory-{os.getpid()}-{next(_numbers)}"  # links of the same name would mix
        self._links = in_parallel(
            [
                lambda rank=rank: _link(name, rank, recv_seconds)  # type: ignore[misc]
                for rank in range(MEMBERS)
            ]
        )
        addresses = [_address(rank) for rank in range(MEMBERS)]
        log = SharedRunLog(MEMBERS, recv_seconds)
        super().__init__(
            [
                Runtime(
                    link=link,
                    channels=channels,
                    rank=rank,
                    addresses=addresses,
                    recv_seconds=recv_seconds,
                    log=log,
                )
                for rank, (link, channels) in enumerate(
                    zip(self._links, MemoryChannels.committee(recv_seconds), strict=True)
                )
            ]
        )

    def each(self, action: Callable[[Session], T]) -> list[T]:
        """Each thread's settings; matrix products take one thread where there are too few cores.

        SPU's threads wait for each other in busy loops: with more threads than cores, products of
        milliseconds take seconds. Some versions of OpenMP have one limit for the whole process, so
        it is restored.
        """
        openmp = _openmp()
        if openmp is None or (os.cpu_count() or 1) >= MEMBERS * _THREADS_OF_A_PRODUCT:
            return super().each(action)
        before = openmp.omp_get_max_active_levels()

        def in_one_thread(session: Session) -> T:
            openmp.omp_set_max_active_levels(0)
            return action(session)

        try:
            return super().each(in_one_thread)
        finally:
            if before:  # otherwise another committee restores it
                openmp.omp_set_max_active_levels(before)

    def close(self) -> None:
        self.sessions = ()
        self._links = []


def committee_in_threads() -> MemoryCommittee:
    """`with committee_in_threads() as committee: committee.each(...)`"""
    return MemoryCommittee()


def _openmp() -> ctypes.CDLL | None:
    """Return the OpenMP library that SPU is linked to; None on systems with another one."""
    try:
        return ctypes.CDLL(_OPENMP)
    except OSError:
        return None


def _link(name: str, rank: Rank, recv_seconds: float) -> Any:
    description = libspu.link.Desc()
    description.id = name
    description.recv_timeout_ms = int(recv_seconds * 1000)
    for each in range(MEMBERS):
        description.add_party(f"member-{each}", _address(each))
    return libspu.link.create_mem(description, rank)


def _address(rank: Rank) -> str:
    return f"thread_{rank}"
