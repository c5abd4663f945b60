"""Three parties on this machine, for tests, benches and demonstrations."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType

from opfl_chain.mpc.committee import Committee, in_parallel
from opfl_chain.mpc.party import JOIN_SECONDS, STALL_SECONDS, Party
from opfl_chain.mpc.ranks import MEMBERS
from opfl_chain.mpc.seat import Seat
from opfl_chain.transport.tls import TlsFiles

_HOST = "127.0.0.1"
_numbers = itertools.count()


def free_addresses(count: int = MEMBERS) -> tuple[str, ...]:
    """Addresses on loopback at which nobody listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((_HOST, 0))
        return tuple(f"{_HOST}:{each.getsockname()[1]}" for each in sockets)


class LocalCommittee:
    """`with LocalCommittee() as local, local.session(seconds=60) as committee: ...`

    `start` makes a party, where it shall not be in the network of this process.
    """

    def __init__(
        self,
        addresses: tuple[str, ...] | None = None,
        tls: Sequence[TlsFiles | None] = (None,) * MEMBERS,
        start: Callable[[Seat], Party] = Party,
    ) -> None:
        addresses = addresses or free_addresses()
        self.parties = tuple(start(Seat(rank, addresses, tls[rank])) for rank in range(MEMBERS))

    def wait_until_warm(self) -> None:
        for party in self.parties:
            party.wait_until_warm()

    @contextmanager
    def session(
        self,
        audit: str | None = None,
        *,
        seconds: float,
        join_seconds: float = JOIN_SECONDS,
        stall_seconds: float = STALL_SECONDS,
    ) -> Iterator[Committee]:
        """A session of all three."""
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

    def __enter__(self) -> LocalCommittee:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
