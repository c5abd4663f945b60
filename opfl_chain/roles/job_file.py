"""The job file, and the terms that it defines."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from opfl_chain.chain.bindings.types import JobTerms, Pay, Penalties, Phases
from opfl_chain.chain.rpc import checksum
from opfl_chain.chain.terms import (
    FEWEST_CONTRIBUTIONS,
    MAX_CLIENTS,
    TREASURY_SHARE,
    shortest_unbonding,
)
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.protocol.aggregate import weights_hash
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.policy import Policy
from opfl_chain.roles.settings import AccountSettings, Section
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.registry import rule_of

DEFAULT_BATCH_SIZE: Final = 8
DEFAULT_OPTIMIZER: Final = {"name": "adamw", "learning_rate": 0.006}
_SMALLEST_ADDRESS: Final = 1 << 64
"""Lower addresses belong to precompiles and examples, not to keys."""
Blocks = Annotated[int, Field(ge=1, le=1 << 30)]
BasisPoints = Annotated[int, Field(ge=0, le=10_000)]


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{value!r} is not a number") from None
    if not found.is_finite() or found < 0:
        raise ValueError(f"{value!r} is not an amount: it must be finite and not negative")
    return found


def _wei(value: Any) -> int:
    wei = _decimal(value) * ETHER
    if wei != wei.to_integral_value():
        raise ValueError(f"{value!r} ether is not a whole number of wei")
    return int(wei)


def _part(value: Any) -> Decimal:
    if (found := _decimal(value)) > 1:
        raise ValueError(f"{value!r} is more than 1, the whole amount")
    return found


def _address(value: Any) -> str:
    try:
        address = checksum(value)
    except (ValueError, TypeError):
        raise ValueError(f"{value!r} is not an address") from None
    if 0 < int(address, 16) < _SMALLEST_ADDRESS:
        raise ValueError(f"{value!r} is an address of the example: nobody has its key")
    return address


Ether = Annotated[int, BeforeValidator(_wei)]
"""Ether in the file, wei here."""
Part = Annotated[Decimal, BeforeValidator(_part)]
AddressText = Annotated[str, BeforeValidator(_address)]


class ChainSection(Section):
    rpc_url: str
    deployment: Path
    confirmations: Annotated[int, Field(ge=0, le=100)] = 2


class TrainingSection(Section):
    """Files that `opfl calibrate` wrote, or a model for which a boundary comes with the package."""

    policy: Path | None = None
    boundary: Path | None = None
    model: str = "lenet-61706"
    batch_size: Annotated[int, Field(ge=1)] = DEFAULT_BATCH_SIZE
    audit_rate: Annotated[float, Field(ge=0, le=1)] = 0.1
    scheme: Literal["shares", "mpc"] = "shares"
    audit: Literal["plain", "guided", "proved"] = "guided"
    seed: Annotated[int, Field(ge=0)] = 0
    optimizer: dict[str, Any] = Field(default_factory=lambda: dict(DEFAULT_OPTIMIZER))


class PhasesSection(Section):
    enrol: Blocks
    deliver: Blocks
    roll: Blocks
    beacon: Blocks
    answer: Blocks
    attest: Blocks
    finalise: Blocks
    response: Blocks


class PenaltiesSection(Section):
    """Penalties: of clients as a part of their deposit, of members as parts of their stake."""

    client: Part = Decimal(1)
    silence: Part
    dissent: Part
    absence: Part
    withheld: Part


class PaySection(Section):
    """Pay for the work of a round."""

    client: Ether
    member: Ether


class JobFile(Section):
    """The file of `opfl job create`. The contract checks the terms themselves."""

    chain: ChainSection
    account: AccountSettings
    training: TrainingSection = TrainingSection()
    rounds: Annotated[int, Field(ge=1, lt=1 << 32)]
    max_clients: Annotated[int, Field(ge=1, lt=1 << 32)] = MAX_CLIENTS
    fewest_contributions: Annotated[int, Field(ge=1, lt=1 << 32)] = FEWEST_CONTRIBUTIONS
    members: Annotated[list[AddressText], Field(min_length=3, max_length=3)]
    standbys: tuple[AddressText, ...] = ()
    treasury: AddressText
    treasury_share: BasisPoints = TREASURY_SHARE
    client_deposit: Ether
    member_stake: Ether
    public_roll: bool = True
    unbonding_delay: Blocks | None = None
    unlock_delay: Blocks | None = None
    """The default of both is the shortest that the contract allows."""
    phases: PhasesSection
    penalties: PenaltiesSection
    pay: PaySection

    def terms(self, policy: Policy, boundary: Boundary) -> JobTerms:
        require_first_statement(policy, boundary)
        phases = Phases(**self.phases.model_dump())
        members = self.penalties.model_dump(exclude={"client"})
        return JobTerms(
            policy_hash=policy.hash,
            boundary_hash=boundary.hash,
            model_hash=first_model_hash(policy),
            members=tuple(map(Address, self.members)),
            standbys=tuple(map(Address, self.standbys)),
            treasury=Address(self.treasury),
            client_deposit=self.client_deposit,
            member_stake=self.member_stake,
            audit_rate=policy.audit_rate,
            rounds=self.rounds,
            max_clients=self.max_clients,
            fewest_contributions=self.fewest_contributions,
            unbonding_delay=self.unbonding_delay or shortest_unbonding(phases),
            unlock_delay=self.unlock_delay or shortest_unbonding(phases),
            treasury_share=self.treasury_share,
            public_roll=self.public_roll,
            phases=phases,
            penalties=Penalties(
                client=int(self.penalties.client * self.client_deposit),
                **{name: int(part * self.member_stake) for name, part in members.items()},
            ),
            pay=Pay(**self.pay.model_dump()),
        )


def first_model_hash(policy: Policy) -> bytes:
    """Return the hash of the first model, which follows from the policy's seed."""
    layout = model_of(policy).layout
    return weights_hash(layout.flatten(initial_parameters(layout, policy.seeds.model)))


def require_first_statement(policy: Policy, boundary: Boundary) -> None:
    """Raise if steps are to be proved, and that of the first round has no statement.

    Bits may not fit the model, or an operation of a plug-in may have no proof.
    """
    tolerance = rule_of(boundary).tolerance(boundary)
    if tolerance is not None:
        layout = model_of(policy).layout
        statement_of(policy, tolerance, initial_parameters(layout, policy.seeds.model))
