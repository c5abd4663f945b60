"""The interface of joint audits: how a member finds out with its peers how audits end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.roles.member.hearings import Hearing, Outcomes
from opfl_chain.roles.node import Moment
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.routes import Route


class JointAudits(ABC):
    """One implementation for audits inside MPC, one for proved steps."""

    hearings_needed: int
    """Hearings that must find a contribution outside before its client is charged."""

    @property
    def under_way(self) -> tuple[str | None, str | None]:
        """The audit that is running with all peers, and the one to which some have to come."""
        return None, None

    @property
    def health(self) -> dict[str, Any]:
        """Fields of the member's health."""
        return {}

    def routes(self) -> list[Route]:
        """Routes at which peers take part."""
        return []

    @abstractmethod
    def begin(self, head: int) -> None:
        """Start to perform duties at this block."""

    @abstractmethod
    def hear(self, hearing: Hearing, now: Moment) -> Outcomes | None:
        """Take the next steps of a hearing; return how audits end, or None while it is not over.

        The first hearing of a round is about all contributions on its roll: those that are not
        audited have an outcome too.
        """

    def statement(self, round_: RoundView) -> Statement:
        """The statement that steps of a round are proved by."""
        raise ProtocolError(f"steps of round {round_.number} are not proved")

    @abstractmethod
    def end(self) -> None:
        """All duties at this block are performed."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""
