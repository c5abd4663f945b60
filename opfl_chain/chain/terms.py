"""Default terms of a job: deposits, penalties and pay.

Local jobs, rehearsals and benchmarks start from them and say what they do otherwise. Phases have no
default: they depend on the pace of the chain and of the participants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opfl_chain.chain.bindings.types import JobTerms, Pay, Penalties, Phases, Schedule
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.identifiers import Address

DEPOSIT: Final = 10 * ETHER
"""Locked by a client."""
STAKE: Final = 20 * ETHER
"""Locked by a member or standby."""
PAY: Final = Pay(client=ETHER // 100, member=ETHER // 20)
"""Earned by an accepted contribution, and by a seat that attested what was decided."""
TREASURY_SHARE: Final = 2000
"""Basis points of a penalty; the rest is burnt."""
MAX_CLIENTS: Final = 100
FEWEST_CONTRIBUTIONS: Final = 3


def default_penalties(deposit: int = DEPOSIT, stake: int = STAKE) -> Penalties:
    """Return penalties of which a failed audit costs the whole deposit."""
    return Penalties(
        client=deposit,
        silence=stake // 10,
        dissent=stake // 5,
        absence=stake // 5,
        withheld=stake // 4,
    )


def shortest_unbonding(phases: Phases) -> int:
    """Return the shortest delay that the contract allows, in blocks.

    It outlasts a round, from its opening to the last block in which it can cost anyone money.
    """
    before = phases.deliver + phases.roll + phases.beacon + phases.answer + phases.attest
    return before + phases.response + 1


def budget(terms: JobTerms) -> int:
    """Return the most that a job can pay for work: what its creator escrows."""
    per_round = terms.pay.client * terms.max_clients + terms.pay.member * len(terms.members)
    return per_round * terms.rounds


def schedule_of(phases: Phases, opened_at: int) -> Schedule:
    """Return the deadlines of a round, as the contract computes them."""
    deliver = opened_at + phases.deliver
    roll = deliver + phases.roll
    beacon = roll + phases.beacon
    answer = beacon + phases.answer
    attest = answer + phases.attest
    finalise, response = attest + phases.finalise, attest + phases.response
    return Schedule(deliver, roll, beacon, answer, attest, finalise, response)


def default_terms(
    *,
    policy_hash: bytes,
    boundary_hash: bytes,
    model_hash: bytes,
    members: Sequence[Address],
    standbys: Sequence[Address] = (),
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
        standbys=tuple(standbys),
        treasury=treasury,
        client_deposit=DEPOSIT,
        member_stake=STAKE,
        audit_rate=audit_rate,
        rounds=rounds,
        max_clients=MAX_CLIENTS,
        fewest_contributions=FEWEST_CONTRIBUTIONS,
        unbonding_delay=shortest_unbonding(phases),
        unlock_delay=shortest_unbonding(phases),
        treasury_share=TREASURY_SHARE,
        public_roll=True,
        phases=phases,
        penalties=default_penalties(),
        pay=PAY,
    )
