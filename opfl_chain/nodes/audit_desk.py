"""Where a member meets its peers for MPC: one session at a time, beside everything else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from opfl_chain.mpc.errors import MpcError
from opfl_chain.mpc.party import Party, PartySession
from opfl_chain.nodes.errors import ModelMissing
from opfl_chain.nodes.processor import seconds_of
from opfl_chain.transport.errors import TransportError

Task = Callable[[PartySession], None]
"""Keeps its result on disk itself."""

_LOGGER = logging.getLogger("opfl.committee")
_SESSION_SECONDS = 300.0


class AuditDesk:
    """A session that fails is no loss: what it was for is still due, and is asked for again."""

    def __init__(self, party: Party, join_seconds: float, done: Callable[[], None]) -> None:
        self._party = party
        self._join_seconds = join_seconds
        self._done = done
        self._pool = ThreadPoolExecutor(1, "audits")
        self._current: tuple[str, Future[None]] | None = None
        self._sent_bytes = 0

    @property
    def cost(self) -> dict[str, float]:
        """What sessions sent to the peers, and what their process has computed so far."""
        return {"mpc_bytes_sent": self._sent_bytes, "mpc_cpu_seconds": seconds_of(self._party.pid)}

    @property
    def busy_with(self) -> str | None:
        if self._current is None or self._current[1].done():
            return None
        return self._current[0]

    def prepare(self, action: Callable[[], None]) -> None:
        """Do something that audits need, before the first of them."""
        self._current = "preparing", self._pool.submit(self._guarded, action, "preparing")

    def offer(self, name: str, task: Task) -> None:
        """Start a task unless another one is under way. All members give it the same name."""
        if self.busy_with is None:
            self._current = (
                name,
                self._pool.submit(self._guarded, lambda: self._meet(name, task), name),
            )

    def close(self) -> None:
        self._party.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _meet(self, name: str, task: Task) -> None:
        with self._party.session(
            name, seconds=_SESSION_SECONDS, join_seconds=self._join_seconds
        ) as session:
            task(session)
        self._sent_bytes += session.sent_bytes

    def _guarded(self, action: Callable[[], None], name: str) -> None:
        try:
            action()
        except (MpcError, TransportError, ModelMissing) as error:
            reason = str(error).splitlines()[0]
            _LOGGER.warning("audit failed", extra={"audit": name, "reason": reason})
        except Exception:
            _LOGGER.exception("audit failed", extra={"audit": name})
        finally:
            self._done()
