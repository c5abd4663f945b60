"""The terms of a rehearsed job: short phases, round numbers."""

import json
from collections.abc import Sequence
from typing import Final

from eth_utils.crypto import keccak

from opfl_chain.chain.bindings.types import JobTerms, Penalties, Phases, Split
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.sampling import audit_rate_of

ETHER: Final = 10**18
DEPOSIT: Final = 10 * ETHER
STAKE: Final = 20 * ETHER

POLICY: Final = json.dumps({"model": "none", "purpose": "rehearsal"}).encode()
BOUNDARY: Final = json.dumps({"rule": "none", "purpose": "rehearsal"}).encode()

# Long enough for all that a phase is for, one block per transaction.
PHASES: Final = Phases(
    enrol=300,
    commit=150,
    beacon=50,
    deliver=20,
    attest=50,
    finalise=50,
    request=50,
    veto=20,
)


def rehearsal_terms(
    members: Sequence[Address],
    relayer: Address,
    treasury: Address,
    *,
    audit_rate: float,
    rounds: int,
) -> JobTerms:
    """Return terms under which a failed replay costs the whole deposit."""
    return JobTerms(
        policy_hash=keccak(POLICY),
        boundary_hash=keccak(BOUNDARY),
        model_hash=model_hash(0),
        members=tuple(members),
        relayer=relayer,
        treasury=treasury,
        client_deposit=DEPOSIT,
        member_stake=STAKE,
        audit_rate=audit_rate_of(audit_rate),
        rounds=rounds,
        unbonding_delay=500,
        phases=PHASES,
        penalties=Penalties(
            commitment_mismatch=DEPOSIT // 2,
            not_delivered=DEPOSIT // 10,
            input_not_committed=DEPOSIT,
            replay_outside=DEPOSIT,
            beacon_withheld=STAKE // 4,
            verdict_dissent=STAKE // 5,
            verdict_silence=STAKE // 10,
        ),
        split=Split(burn=5000, treasury=2000, committee=3000),
    )


def model_hash(round_number: int) -> bytes:
    """Return the made-up hash of the model that a round starts from."""
    return keccak(text=f"model {round_number}")
