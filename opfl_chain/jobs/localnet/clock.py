"""The clock of a job on one machine: a block is mined when every daemon has done all it can.

The speed of the machine changes nothing: a slow or stopped daemon holds the clock and misses no
deadline. Idle blocks are skipped at once.

Daemons are asked one after the other, and a message of a busy daemon makes a settled one busy
again. So all are asked twice. If all were settled the first time, and their activity counts are the
same the second time, there was a moment in between at which all were settled at once. A message is
in flight only while its sender is busy, so none was in flight at that moment.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opfl_chain.chain.devnet import Devnet
from opfl_chain.jobs.localnet.daemon import NoProgress
from opfl_chain.mpc.session.ranks import MEMBERS

_MADE_AT_ONCE = 50
"""Blocks in one request: more would take a busy machine too long."""
_MOST_IDLE = 100
"""Blocks that are mined although no daemon waits for any."""
_LOOK_SECONDS = 0.01


@dataclass(frozen=True)
class DaemonReport:
    """The progress of a daemon, from its health."""

    activity: int = 0
    busy: str | None = None
    head: int | None = None
    """The latest block at the time when nothing was left to do."""
    block: int | None = None
    """The last block whose events it knows; below `head` if it waits for confirmations."""
    hash: str | None = None
    transaction: str | None = None
    """A transaction that is sent and not mined yet."""
    meeting: str | None = None
    """An audit that not all members have joined yet."""
    next_block: int | None = None
    """The next block with a scheduled duty."""

    @classmethod
    def of(cls, health: Mapping[str, Any] | None) -> DaemonReport:
        if health is None:
            return cls(busy="its health does not answer")
        names = ("activity", "busy", "transaction", "meeting", "next_block")
        return cls(**{name: health[name] for name in names}, **(health["settled_at"] or {}))

    @property
    def own_hash(self) -> dict[int, str]:
        """The hash of the last block whose events it knows, as it knows it."""
        return {} if self.block is None or self.hash is None else {self.block: self.hash}


def hindrance(
    reports: Mapping[str, DaemonReport], head: int, hashes: Mapping[int, str]
) -> str | None:
    """Return the reason why no block may be mined yet; None if all daemons wait for one.

    `hashes` are the present hashes of the blocks that the reports name.
    """
    for name, report in reports.items():
        if report.busy is not None:
            return f"{name} is busy: {report.busy}"
        if report.head != head:
            return f"{name} has settled at block {report.head}, but the chain is at {head}"
        if report.block is not None and hashes.get(report.block) != report.hash:
            return f"{name} has not seen that block {report.block} was replaced"
    meetings = Counter(report.meeting for report in reports.values() if report.meeting)
    for meeting, there in meetings.items():
        if there == MEMBERS:
            return f"all members are about to meet for {meeting!r}"
    return None


def is_unchanged(first: Mapping[str, DaemonReport], second: Mapping[str, DaemonReport]) -> bool:
    """Return whether no daemon did anything between its two reports."""
    counts = [{name: each.activity for name, each in all_.items()} for all_ in (first, second)]
    return counts[0] == counts[1]


def next_height(
    reports: Mapping[str, DaemonReport], head: int, last_sent: int, planned: Iterable[int] = ()
) -> int | None:
    """Return the next block at which a daemon has something to do; None if there is none.

    `last_sent` is the last block with transactions: daemons that wait for confirmations learn of
    them later. `planned` are blocks at which something else happens.
    """
    if any(report.transaction is not None for report in reports.values()):
        return head + 1
    known = [report.block for report in reports.values() if report.block is not None]
    confirmed = last_sent + head - min(known, default=head)
    due = [report.next_block for report in reports.values() if report.next_block is not None]
    return min((block for block in (confirmed, *due, *planned) if block > head), default=None)


Ask = Callable[[], Mapping[str, Callable[[], DaemonReport]]]


class Clock:
    """Mines blocks. `ask` returns, for every running daemon, a function that fetches its report.

    `planned` holds blocks at which something else happens; whoever plans it keeps it up to date.
    """

    def __init__(self, devnet: Devnet, ask: Ask) -> None:
        self._devnet = devnet
        self._ask = ask
        self._reports: dict[str, DaemonReport] = {}
        self._last_sent = 0
        self._idle = 0
        self.planned: dict[str, int] = {}
        self.waits_for = "no daemon was asked yet"
        """The reason why there is no new block."""

    def tick(self) -> bool:
        """Mine the next blocks if all daemons wait for one. Return whether any were mined."""
        head, ask = self._devnet.rpc.block_number(), self._ask()
        if not ask and not self.planned:
            self.waits_for = "nobody: the processes of all daemons are ending"
            return False
        hashes = self._hashes()
        for name, get in ask.items():
            known = self._reports.get(name)
            if known is None or known.meeting or hindrance({name: known}, head, hashes):
                report = self._reports[name] = get()
                # One that is busy is enough: asking the others would take time from it.
                if found := hindrance({name: report}, head, report.own_hash):
                    self.waits_for = found
                    return False
        self._reports = {name: self._reports[name] for name in ask}
        if self._is_hindered(head):
            return False
        again = {name: get() for name, get in ask.items()}
        unchanged = is_unchanged(self._reports, again)
        self._reports = again
        if not unchanged or self._is_hindered(head):
            return False
        self._make_blocks(head)
        return True

    def _is_hindered(self, head: int) -> bool:
        found = hindrance(self._reports, head, self._hashes())
        self.waits_for = found or "nobody"
        return found is not None

    def _hashes(self) -> dict[int, str]:
        """Return the present hashes of the blocks up to which daemons have followed the chain."""
        blocks = {each.block for each in self._reports.values() if each.block is not None}
        found = self._devnet.rpc.batch_or_raise(
            [("eth_getBlockByNumber", (hex(block), False)) for block in blocks]
        )
        return {block: each["hash"] for block, each in zip(blocks, found, strict=True) if each}

    def _make_blocks(self, head: int) -> None:
        height = next_height(self._reports, head, self._last_sent, self.planned.values())
        self._idle = self._idle + 1 if height is None else 0
        if self._idle > _MOST_IDLE:
            raise NoProgress(
                f"at block {head} all daemons have done all they can, and none of them waits for"
                " a later block"
            )
        height = height or head + 1
        if any(report.transaction is not None for report in self._reports.values()):
            self._last_sent = height
        while (missing := height - self._devnet.rpc.block_number()) > 0:
            self._devnet.mine(min(missing, _MADE_AT_ONCE))


@contextmanager
def mining_at_once(devnet: Devnet) -> Iterator[None]:
    """Mine a block for every transaction, while no daemon runs and the clock stands still."""
    over = threading.Event()

    def mine() -> None:
        while not over.wait(_LOOK_SECONDS):
            if devnet.has_pending():
                devnet.mine()

    thread = threading.Thread(target=mine, name="mining", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
