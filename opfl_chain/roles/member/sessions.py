"""A member's MPC sessions with its peers: one at a time, in a background thread."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from opfl_chain.mpc.session import errors
from opfl_chain.mpc.session.party import STALL_SECONDS, Party, PartySession
from opfl_chain.roles.settings import ModelMissing
from opfl_chain.system.resources import seconds_of
from opfl_chain.transport.errors import TransportError

Task = Callable[[PartySession], None]
"""A task stores its own result on disk."""

_LOGGER = logging.getLogger("opfl.committee")
_SESSION_SECONDS = 300.0
_MOST_FAILURES = 3
"""Failures of one audit at one block. It is retried at the next block; other duties go on."""
_PASSING = (
    errors.PeerUnreachable,
    errors.PeerLost,
    errors.PeerStalled,
    errors.LinkFailed,
    errors.DeadlineExceeded,
)
"""Errors of a slow or absent peer. They do not count as failures of the audit."""


@dataclass
class _Current:
    """The current task."""

    name: str
    met: bool
    """True once the peers have joined. Until then the task can be left for another one."""
    left: bool = False
    future: Future[None] | None = None


class SessionRunner:
    """Runs sessions. A failed one loses nothing: its task is still due, and is offered again.

    A peer may take `join_seconds` to come. `changed` is called whenever an audit begins, meets or
    ends, and then `done` when it has ended.
    """

    def __init__(
        self,
        party: Party,
        join_seconds: float,
        changed: Callable[[], None],
        done: Callable[[], None],
    ) -> None:
        self._party = party
        self._join_seconds = join_seconds
        self._changed = changed
        self._done = done
        self._pool = ThreadPoolExecutor(1, "audits")
        self._current: _Current | None = None
        self._sent_bytes = 0
        self._head = 0
        self._wanted: set[str] = set()
        self._failures: Counter[str] = Counter()

    @property
    def cost(self) -> dict[str, float]:
        """Bytes that sessions sent to peers, and processor seconds of their process so far."""
        return {"mpc_bytes_sent": self._sent_bytes, "mpc_cpu_seconds": seconds_of(self._party.pid)}

    @property
    def busy_with(self) -> str | None:
        current = self._active
        return current.name if current else None

    @property
    def session(self) -> str | None:
        """The audit that is running with all peers."""
        current = self._active
        return current.name if current and current.met else None

    @property
    def meeting(self) -> str | None:
        """The audit to which not all peers have come yet."""
        current = self._active
        return current.name if current and not current.met else None

    @property
    def _active(self) -> _Current | None:
        current = self._current
        if current is None or (current.future is not None and current.future.done()):
            return None
        return current

    def prepare(self, action: Callable[[], None]) -> None:
        """Run an action that audits need, before the first of them."""
        self._start(_Current("preparing", met=True), action)

    def begin(self, head: int) -> None:
        """Start a round of offers at this block; the most important one comes first."""
        self._wanted.clear()
        if head != self._head:
            self._head = head
            self._failures.clear()

    def offer(self, name: str, task: Task) -> bool:
        """Start a task unless another one is running. All members must give it the same name.

        A meeting to which not all have come is left for a more important one. Return False if the
        task has failed too often at this block.
        """
        if self._failures[name] >= _MOST_FAILURES:
            return False
        if self.meeting not in (None, name, *self._wanted):
            self._leave()
        self._wanted.add(name)
        if self.busy_with is None:
            current = _Current(name, met=False)
            self._start(current, lambda: self._meet(current, task))
        return True

    def leave_what_is_not_wanted(self) -> None:
        """Leave a meeting that was not offered since `begin`."""
        if self.meeting not in (None, *self._wanted):
            self._leave()

    def close(self) -> None:
        self._party.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _start(self, current: _Current, action: Callable[[], None]) -> None:
        self._current = current
        self._changed()
        current.future = self._pool.submit(self._guarded, action, current)

    def _leave(self) -> None:
        current = self._active
        if current is not None and current.future is not None:
            current.left = True
            self._party.interrupt()
            wait([current.future])

    def _meet(self, current: _Current, task: Task) -> None:
        with self._party.session(
            current.name,
            seconds=max(_SESSION_SECONDS, self._join_seconds),
            join_seconds=self._join_seconds,
            stall_seconds=max(STALL_SECONDS, self._join_seconds),
        ) as session:
            current.met = True
            self._changed()
            task(session)
        self._sent_bytes += session.sent_bytes

    def _guarded(self, action: Callable[[], None], current: _Current) -> None:
        try:
            action()
        except (errors.MpcError, TransportError, ModelMissing) as error:
            if current.left:
                _LOGGER.info("left a meeting", extra={"audit": current.name})
                return
            if not isinstance(error, _PASSING):
                self._failures[current.name] += 1
            reason = str(error).splitlines()[0]
            _LOGGER.warning("audit failed", extra={"audit": current.name, "reason": reason})
        except Exception:
            self._failures[current.name] += 1
            _LOGGER.exception("audit failed", extra={"audit": current.name})
        finally:
            self._changed()
            self._done()
