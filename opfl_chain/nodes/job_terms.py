"""The file that a job is created from, and the terms that it makes."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from opfl_chain.chain.bindings.types import JobTerms, Penalties, Phases, Split
from opfl_chain.chain.rpc import checksum
from opfl_chain.models.initialisation import initial_parameters
from opfl_chain.models.registry import model_named
from opfl_chain.nodes.settings import AccountSettings, Section
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.rules import Boundary
from opfl_chain.training.aggregate import weights_hash

WEI: Final = 10**18
NOBODY: Final = "0x" + "00" * 20
_SMALLEST_ADDRESS: Final = 1 << 64
"""No key has such an address; precompiles do, and examples."""


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no number")
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{value!r} is no number") from None
    if not found.is_finite() or found < 0:
        raise ValueError(f"{value!r} is no amount")
    return found


def _wei(value: Any) -> int:
    wei = _decimal(value) * WEI
    if wei != wei.to_integral_value():
        raise ValueError(f"{value!r} ether is no whole number of wei")
    return int(wei)


def _part(value: Any) -> Decimal:
    if (found := _decimal(value)) > 1:
        raise ValueError(f"{value!r} is more than all of it, which is 1")
    return found


def _address(value: Any) -> str:
    try:
        address = checksum(value)
    except (ValueError, TypeError):
        raise ValueError(f"{value!r} is no address") from None
    if 0 < int(address, 16) < _SMALLEST_ADDRESS:
        raise ValueError(f"{value!r} is that of the example: nobody has its key")
    return address


Ether = Annotated[int, BeforeValidator(_wei)]
"""In ether in the file, in wei here."""
Part = Annotated[Decimal, BeforeValidator(_part)]
AddressText = Annotated[str, BeforeValidator(_address)]
Blocks = Annotated[int, Field(ge=1, le=1 << 30)]
BasisPoints = Annotated[int, Field(ge=0, le=10_000)]


class ChainSection(Section):
    rpc_url: str
    deployment: Path
    confirmations: Annotated[int, Field(ge=0, le=100)] = 2


class TrainingSection(Section):
    """Files that `opfl calibrate` wrote, or a model for which a boundary comes with the package."""

    policy: Path | None = None
    boundary: Path | None = None
    model: str = "lenet-61706"
    batch_size: Annotated[int, Field(ge=1)] = 8
    audit_rate: Annotated[float, Field(ge=0, le=1)] = 0.1
    scheme: Literal["shares", "mpc"] = "shares"
    seed: Annotated[int, Field(ge=0)] = 0
    optimizer: dict[str, Any] = Field(
        default_factory=lambda: {"name": "adamw", "learning_rate": 0.006}
    )


class PhasesSection(Section):
    enrol: Blocks
    commit: Blocks
    beacon: Blocks
    deliver: Blocks
    attest: Blocks
    finalise: Blocks
    request: Blocks
    veto: Blocks

    @property
    def lifetime(self) -> int:
        """From the opening of a round to the last block in which it can cost anyone anything."""
        after_enrolment = self.model_dump(exclude={"enrol"})
        return sum(after_enrolment.values())


class ClientPenalties(Section):
    commitment_mismatch: Part
    not_delivered: Part
    input_not_committed: Part
    replay_outside: Part


class MemberPenalties(Section):
    beacon_withheld: Part
    verdict_dissent: Part
    verdict_silence: Part


class SplitSection(Section):
    burn: BasisPoints
    treasury: BasisPoints
    committee: BasisPoints


class JobFile(Section):
    """What `opfl job create` is told. What is wrong about terms themselves, the contract says."""

    chain: ChainSection
    account: AccountSettings
    training: TrainingSection = TrainingSection()
    rounds: Annotated[int, Field(ge=1, lt=1 << 32)]
    members: Annotated[list[AddressText], Field(min_length=3, max_length=3)]
    relayer: AddressText = NOBODY
    treasury: AddressText
    client_deposit: Ether
    member_stake: Ether
    unbonding_delay: Blocks | None = None
    """Without it as short as the contract allows."""
    phases: PhasesSection
    client_penalties: ClientPenalties
    member_penalties: MemberPenalties
    split: SplitSection

    def terms(self, policy: Policy, boundary: Boundary) -> JobTerms:
        client = self.client_penalties.model_dump()
        member = self.member_penalties.model_dump()
        return JobTerms(
            policy_hash=policy.hash,
            boundary_hash=boundary.hash,
            model_hash=first_model_hash(policy),
            members=tuple(map(Address, self.members)),
            relayer=Address(self.relayer),
            treasury=Address(self.treasury),
            client_deposit=self.client_deposit,
            member_stake=self.member_stake,
            audit_rate=policy.audit_rate,
            rounds=self.rounds,
            unbonding_delay=self.unbonding_delay or self.phases.lifetime + 1,
            phases=Phases(**self.phases.model_dump()),
            penalties=Penalties(
                **{name: int(part * self.client_deposit) for name, part in client.items()},
                **{name: int(part * self.member_stake) for name, part in member.items()},
            ),
            split=Split(**self.split.model_dump()),
        )


def first_model_hash(policy: Policy) -> bytes:
    """Of the model that the policy's seed makes, from which every job of it starts."""
    layout = model_named(policy.model.name).layout
    return weights_hash(layout.flatten(initial_parameters(layout, policy.seeds.model)))
