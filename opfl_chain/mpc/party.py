"""A member of the committee: sessions with its peers, each over a link of its own.

SPU runs in a child process that stays between sessions. Whatever happens to it or to a peer, a call
returns or raises by the session's deadline, and the next session finds a new process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from opfl_chain.mpc.errors import MpcError, SessionClosed
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.party_child import PartyChild
from opfl_chain.mpc.procedures import name_of
from opfl_chain.mpc.ranks import Rank
from opfl_chain.mpc.runtime import Runtime
from opfl_chain.mpc.seat import Seat
from opfl_chain.mpc.session import Procedure, RunResult, SessionInput
from opfl_chain.mpc.shares import Share, Words
from opfl_chain.transport.deadline import Deadline

JOIN_SECONDS = 30.0
STALL_SECONDS = 10.0
LEAVE_SECONDS = 5.0
"""For all to leave. A peer that dies at the very end would keep us for the rest of the session."""
_MARGIN = 0.1
_MAX_MARGIN_SECONDS = 0.5
"""The child's deadline is a little earlier, so that it can say who was late."""


class Party:
    """One member. Its child process starts at once and is warm by the time it is needed."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self._reservation = seat.reserve_address()
        self._child: PartyChild | None = PartyChild(seat.rank)
        self._session: PartySession | None = None

    @property
    def rank(self) -> Rank:
        return self.seat.rank

    @property
    def pid(self) -> int | None:
        """Of the child process."""
        return self._child.pid if self._child else None

    def wait_until_warm(self, seconds: float = 30.0) -> None:
        """Wait for the child process to have started, where the first session must not."""
        self._replace_dead_child()
        self.request({"do": "nothing"}, Deadline(seconds), "its process started")

    def session(
        self,
        audit: str,
        *,
        seconds: float,
        join_seconds: float = JOIN_SECONDS,
        stall_seconds: float = STALL_SECONDS,
    ) -> PartySession:
        """Meet the peers and connect. All members give the same `audit`, and a new one each time.

        The whole session must be over after `seconds`. A peer must come within `join_seconds`, and
        may not be silent for `stall_seconds`; pulses come twice a second.
        """
        if self._session is not None:
            raise SessionClosed(f"audit {self._session.audit!r} is still under way")
        self._replace_dead_child()
        session = PartySession(self, audit, Deadline(seconds))
        self._session = session
        session.join(join_seconds, stall_seconds)
        return session

    def request(self, request: dict[str, Any], deadline: Deadline, phase: str) -> Any:
        """Have the child do something. If that fails in any way, the child is replaced."""
        if self._child is None:
            raise SessionClosed("the party is closed")
        try:
            return self._child.request(request, deadline, phase)
        except BaseException:  # also Ctrl-C: a reply that nobody read would answer another request
            self._renew()
            raise

    def ended(self) -> None:
        """The session is over."""
        self._session = None

    def abandon(self) -> None:
        """End the session without the peers' consent: they find that we are gone."""
        if self._session is not None:
            self._renew()

    def _replace_dead_child(self) -> None:
        """Should something have ended it between two sessions."""
        if self._child is not None and self._session is None and not self._child.alive:
            self._renew()

    def _renew(self) -> None:
        self.ended()
        if self._child is not None:
            self._child.kill()
            self._child = PartyChild(self.seat.rank)

    def close(self) -> None:
        self.ended()
        self._reservation.close()
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> Party:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class PartySession:
    """A `Session` of which the child process does the work. A context manager."""

    def __init__(self, party: Party, audit: str, deadline: Deadline) -> None:
        self.audit = audit
        self.timings: dict[str, float] = {}
        """Seconds to meet the peers, and to connect the link."""
        self.sent_bytes = 0
        """To the peers, payload only: known once the session was left in good order."""
        self._party = party
        self._deadline = deadline
        self._over: str | None = None

    @property
    def rank(self) -> Rank:
        return self._party.rank

    def join(self, join_seconds: float, stall_seconds: float) -> None:
        seconds = self._deadline.seconds
        request = {
            "do": "join",
            "seat": self._party.seat.to_json(),
            "audit": self.audit,
            "seconds": seconds - min(_MARGIN * seconds, _MAX_MARGIN_SECONDS),
            "started": self._deadline.started,
            "join_seconds": join_seconds,
            "stall_seconds": stall_seconds,
        }
        self.timings = self._request(request, "the members met")

    def run(self, executable: Executable, inputs: Mapping[str, SessionInput]) -> RunResult:
        result: RunResult = self.call(Runtime.run, executable=executable, inputs=dict(inputs))
        return result

    def open(self, share: Share, fraction_bits: int) -> Words:
        return self.open_all([share], fraction_bits)[0]

    def open_all(self, shares: Sequence[Share], fraction_bits: int) -> list[Words]:
        opened: list[Words] = self.call(
            Runtime.open_all, shares=list(shares), fraction_bits=fraction_bits
        )
        return opened

    def call(self, procedure: Procedure, **arguments: Any) -> Any:
        name = name_of(procedure)
        request = {"do": "call", "procedure": name, "arguments": arguments}
        return self._request(request, f"the members ran {procedure.__qualname__}")

    def close(self) -> None:
        """Leave in good order. What has been computed stands, so that nothing here is an error.

        A peer that is lost now is not waited for as one is whose answer matters.
        """
        if self._over is None:
            self._deadline = Deadline(min(LEAVE_SECONDS, self._deadline.remaining))
            with contextlib.suppress(MpcError):
                self.sent_bytes = self._request({"do": "leave"}, "the members left")["sent_bytes"]
            self._over = "it was left"
            self._party.ended()

    def _request(self, request: dict[str, Any], phase: str) -> Any:
        if self._over is not None:
            raise SessionClosed(self._over)
        try:
            return self._party.request(request, self._deadline, phase)
        except BaseException as error:
            self._over = f"it failed: {error}"
            raise

    def __enter__(self) -> PartySession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif self._over is None:  # the caller gave up, and the peers shall not wait for us
            self._over = f"it was given up: {error}"
            self._party.abandon()
