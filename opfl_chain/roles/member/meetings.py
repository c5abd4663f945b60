"""Joint audits inside MPC: the three members meet in a session for every round."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from opfl_chain.mpc.session.party import Party
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address
from opfl_chain.roles.member.audits import Judging
from opfl_chain.roles.member.joint_audits import JointAudits
from opfl_chain.roles.member.sessions import SessionRunner, Task
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.errors import TransportError


class MeetingAudits(JointAudits):
    """Audits of one member, which run one at a time in the background."""

    def __init__(self, node: Node, judging: Judging, party: Party, join_seconds: float) -> None:
        self._node = node
        self._judging = judging
        self._sessions = SessionRunner(party, join_seconds, node.progress.count, node.wake)
        self._helping = node.backoff(first=1.0, last=4.0)
        self._sessions.prepare(judging.warm)

    @property
    def under_way(self) -> tuple[str | None, str | None]:
        return self._sessions.session, self._sessions.meeting

    @property
    def health(self) -> dict[str, Any]:
        return {"audit": self._sessions.busy_with, **self._sessions.cost}

    def begin(self, head: int) -> None:
        self._sessions.begin(head)

    def judge(self, round_: RoundView) -> None:
        """Offer a meeting on a round."""
        self._meet(_judging(round_), lambda session: self._judging.together(session, round_))

    def judge_again(self, round_: RoundView, clients: Sequence[Address]) -> None:
        """Replay all failed contributions of a round at once: one by one might take too long."""
        subject = keccak256("".join(clients).encode()).hex()[:16]
        self._meet(
            f"once more {round_.id} {subject}",
            lambda session: self._judging.once_more(session, round_, clients),
        )

    def help(self, round_: RoundView, silent: Sequence[Address]) -> None:
        """Meet with a peer that asks for it. Our own verdict and attestation stay."""
        if self._sessions.session is not None:
            return
        name = _judging(round_)
        asks = self._sessions.meeting == name
        if self._helping.is_due(name):
            self._helping.failed(name)
            asks = any(self._asks_for(name, member) for member in silent)
        if asks:
            self.judge(round_)

    def end(self) -> None:
        self._sessions.leave_what_is_not_wanted()

    def close(self) -> None:
        self._sessions.close()

    def _meet(self, name: str, task: Task) -> None:
        """Offer an audit, unless it has failed too often at this block."""
        if not self._sessions.offer(name, task):
            self._node.agenda.again()

    def _asks_for(self, name: str, member: Address) -> bool:
        """Return whether a member waits for its peers at an audit."""
        with contextlib.suppress(TransportError):
            return self._node.peers.ask_member_json(member, "/health").get("audit") == name
        return False


def _judging(round_: RoundView) -> str:
    """Return the name of the session in which members judge a round."""
    return f"judge {round_.id}"
