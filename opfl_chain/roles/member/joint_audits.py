"""The interface of joint audits: how a member finds the verdict of a round with its peers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from opfl_chain.protocol.identifiers import Address
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.routes import Route


class JointAudits(ABC):
    """One implementation for audits inside MPC, one for proved steps."""

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
    def judge(self, round_: RoundView) -> None:
        """Take the next steps towards the verdict of a round, which is stored when found."""

    @abstractmethod
    def judge_again(self, round_: RoundView, clients: Sequence[Address]) -> None:
        """Take the next steps towards a second opinion on contributions that failed."""

    @abstractmethod
    def help(self, round_: RoundView, silent: Sequence[Address]) -> None:
        """Judge again with members that have not attested: one may have lost its verdict."""

    @abstractmethod
    def end(self) -> None:
        """All duties at this block are performed."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""
