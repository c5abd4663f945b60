"""Three members in threads of this process, over SPU's in-memory link: for tests."""

from __future__ import annotations

import itertools
import os
from types import TracebackType
from typing import Any

from opfl_chain.mpc.committee import Committee, in_parallel
from opfl_chain.mpc.native import libspu
from opfl_chain.mpc.ranks import MEMBERS, Rank
from opfl_chain.mpc.run_log import SharedRunLog
from opfl_chain.mpc.runtime import Runtime
from opfl_chain.mpc.wires import MemoryWires

_RECV_SECONDS = 120.0
_numbers = itertools.count()


class MemoryCommittee(Committee):
    """`with MemoryCommittee() as committee: committee.run_plain(executable, inputs)`

    Members share the process's log, so that one of them reports the traffic of all three.
    """

    def __init__(self, recv_seconds: float = _RECV_SECONDS) -> None:
        name = f"memory-{os.getpid()}-{next(_numbers)}"  # links of one name would mix
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
                    wires=wires,
                    rank=rank,
                    addresses=addresses,
                    recv_seconds=recv_seconds,
                    log=log,
                )
                for rank, (link, wires) in enumerate(
                    zip(self._links, MemoryWires.committee(recv_seconds), strict=True)
                )
            ]
        )

    def __enter__(self) -> MemoryCommittee:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sessions = ()
        self._links = []


def _link(name: str, rank: Rank, recv_seconds: float) -> Any:
    description = libspu.link.Desc()
    description.id = name
    description.recv_timeout_ms = int(recv_seconds * 1000)
    for each in range(MEMBERS):
        description.add_party(f"member-{each}", _address(each))
    return libspu.link.create_mem(description, rank)


def _address(rank: Rank) -> str:
    return f"thread_{rank}"
