"""Rounds, clients, charges and penalties, as a daemon has followed them on chain."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cached_property

from opfl_chain.chain.bindings.types import ChargeStatus, MemberFault, Outcome, Schedule
from opfl_chain.protocol.errors import RollError
from opfl_chain.protocol.identifiers import Address, ClientIndex, RoundId, RoundNumber
from opfl_chain.protocol.roll import decode_pairs


@dataclass(frozen=True)
class RollView:
    """The roll of a round, as it is on chain."""

    root: bytes
    count: int
    pairs: bytes
    """Empty if the terms keep the root alone on chain."""

    @cached_property
    def commitments(self) -> Mapping[ClientIndex, bytes]:
        """Commitments by client index. Pairs that no honest member signs are nobody's."""
        try:
            return dict(decode_pairs(self.pairs))
        except RollError:
            return {}


@dataclass(frozen=True)
class RoundView:
    """One round. A field is None until its event has happened.

    A round that is opened again after a reorganisation has another opening, and nothing else of the
    first one.
    """

    id: RoundId
    number: RoundNumber
    model_hash: bytes
    opening: bytes
    epoch: int
    """Seat changes before it opened."""
    opened_at: int
    schedule: Schedule
    roll: RollView | None
    rolled_at: int | None
    seed: bytes | None
    verdict_hash: bytes | None
    decided_at: int | None
    over: str | None
    """`finalised` or `void`."""
    over_at: int | None
    aggregate_hash: bytes | None
    next_model_hash: bytes | None

    @property
    def name(self) -> str:
        """Number and opening, for keys of transactions: a round opened again is another one."""
        return f"{self.number} {self.opening.hex()}"

    def settled(self, block: int) -> bool:
        """Return whether it is known who is audited, once all blocks up to this one were seen."""
        overdue = self.roll is not None and block >= self.schedule.beacon
        return self.seed is not None or overdue


RollOf = Callable[[RoundView], Container[ClientIndex]]
"""Returns the clients on a roll. Members know it; the chain may have the root alone."""


def on_public_roll(round_: RoundView) -> Container[ClientIndex]:
    """Return the clients on a roll as the chain has it: nobody if it has the root alone."""
    return round_.roll.commitments if round_.roll else ()


@dataclass(frozen=True)
class ClientView:
    address: Address
    index: ClientIndex
    root: bytes


@dataclass(frozen=True)
class ChargeView:
    """An audit that was held."""

    round: RoundNumber
    client: Address
    held: int
    """Wei that were set aside."""
    held_at: int
    status: ChargeStatus
    outcome: Outcome | None
    """The outcome; None while the audit is held, `NONE` if nobody was left to decide it."""
    decided_at: int | None


@dataclass(frozen=True)
class PenaltyView:
    """A fault that a member paid for."""

    round: RoundNumber
    member: Address
    fault: MemberFault
    amount: int
