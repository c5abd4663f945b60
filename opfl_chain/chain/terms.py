"""Default terms of a job: deposits, penalties, split of slashes.

Local jobs, rehearsals and benchmarks start from them and say what they do otherwise. Phases have no
default: they depend on the pace of the chain and of the participants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Final

from opfl_chain.chain.bindings.types import JobTerms, Penalties, Phases, Split
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.identifiers import Address

DEPOSIT: Final = 10 * ETHER
"""Locked by a client."""
STAKE: Final = 20 * ETHER
"""Locked by a member."""
SPLIT: Final = Split(burn=5000, treasury=2000, committee=3000)


def default_penalties(deposit: int = DEPOSIT, stake: int = STAKE) -> Penalties:
    """Return penalties of which a failed replay costs the whole deposit."""
    return Penalties(
        commitment_mismatch=deposit // 2,
        not_delivered=deposit // 10,
        input_not_committed=deposit,
        replay_outside=deposit,
        beacon_withheld=stake // 4,
        verdict_dissent=stake // 5,
        verdict_silence=stake // 10,
    )


def shortest_unbonding(phases: Phases) -> int:
    """Return the shortest delay that the contract allows, in blocks.

    It outlasts a round, from its opening to the last block in which it can cost anyone money.
    """
    lifetime: int = sum(astuple(phases)) - phases.enrol
    return lifetime + 1


def default_terms(
    *,
    policy_hash: bytes,
    boundary_hash: bytes,
    model_hash: bytes,
    members: Sequence[Address],
    relayer: Address,
    treasury: Address,
    audit_rate: int,
    rounds: int,
    phases: Phases,
) -> JobTerms:
    """Return the terms of a job; `dataclasses.replace` changes some.

    `audit_rate` is the number on chain: see `protocol.randomness`.
    """
    return JobTerms(
        policy_hash=policy_hash,
        boundary_hash=boundary_hash,
        model_hash=model_hash,
        members=tuple(members),
        relayer=relayer,
        treasury=treasury,
        client_deposit=DEPOSIT,
        member_stake=STAKE,
        audit_rate=audit_rate,
        rounds=rounds,
        unbonding_delay=shortest_unbonding(phases),
        phases=phases,
        penalties=default_penalties(),
        split=SPLIT,
    )
