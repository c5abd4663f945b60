"""A whole round judged by one member together with its peers: Algorithm 1, from deliveries on.

Each member checks alone what it can. Members then compare what they found, so that all of them
take the same contributions into MPC, where one bit of each is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opfl_chain.mpc.arithmetic import Held
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.findings import Finding, compare_findings
from opfl_chain.mpc.gates import Contribution, TreeOpening, audit, open_trees
from opfl_chain.mpc.replays import Replays
from opfl_chain.mpc.session import Session
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.delivery import (
    Checked,
    Claim,
    Delivery,
    Expected,
    check_delivery,
    fault_of,
)
from opfl_chain.protocol.errors import DocumentError, ProtocolError
from opfl_chain.protocol.gradient import Scheme, Subject
from opfl_chain.protocol.guided import GuidedBoundary
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.rules import Boundary
from opfl_chain.protocol.verdict import FaultReason, Verdict

BATCH_SIZES = (16, 8, 4, 2, 1)
"""How many contributions are replayed side by side: there is an executable for each size."""

Weights = Mapping[str, NDArray[np.float32]]
Report = Callable[[Claim, str], None]
"""Told why a delivery was refused, in words."""


@dataclass(frozen=True)
class Rules:
    """What a job is judged by."""

    policy: Policy
    boundary: Boundary
    replays: Callable[[int], Executable]
    """The replay of so many contributions."""
    advice_format: AdviceFormat | None = None
    """Of what clients deliver for a guided replay."""

    def __post_init__(self) -> None:
        if self.boundary.policy_hash != "0x" + self.policy.hash.hex():
            raise DocumentError(
                f"the boundary is of policy {self.boundary.policy_hash}, the job has policy"
                f" 0x{self.policy.hash.hex()}: calibrate with the policy of the job"
            )
        if isinstance(self.boundary, GuidedBoundary) != (self.advice_format is not None):
            raise DocumentError(
                f"a boundary of rule {self.boundary.rule} does not go with a"
                f" {self.policy.replay.kind} replay"
            )

    @classmethod
    def of(cls, policy: Policy, boundary: Boundary, replays: Replays) -> Rules:
        return cls(policy, boundary, replays, replays.advice_format)

    def expected(self, rank: int) -> Expected:
        return Expected(
            self.policy.commitment_scheme,
            rank,
            self.boundary.coordinates,
            self.policy.input_format.words,
            self.advice_format.words if self.advice_format else 0,
        )


@dataclass(frozen=True)
class Judgement:
    """The verdict on a round, and this member's components of what passed."""

    verdict: Verdict
    accepted: Mapping[ClientIndex, Held]


def judge(
    session: Session,
    rules: Rules,
    weights: Weights,
    claims: Sequence[Claim],
    deliveries: Mapping[ClientIndex, Delivery],
    report: Report = lambda claim, reason: None,
) -> Judgement:
    """Run all gates over a round. All members call it with the same claims, in the same order."""
    checked = check_deliveries(rules.expected(session.rank), claims, deliveries, report)
    faults = compare_findings(
        session,
        _subject(rules, weights, claims),
        [
            Finding(found) if isinstance(found, FaultReason) else Finding(None, found.leaves)
            for found in checked.values()
        ],
    )
    reasons = {
        claim.client: reason
        for claim, reason in zip(claims, faults, strict=True)
        if reason is not None
    }
    sound = {
        claim: found
        for claim, found in zip(claims, checked.values(), strict=True)
        if isinstance(found, Checked) and claim.client not in reasons
    }
    if rules.policy.commitment_scheme is Scheme.MPC:
        reasons |= _unopened(session, {c: found for c, found in sound.items() if not c.audited})
    reasons |= _outside(
        session,
        rules,
        weights,
        {claim: found for claim, found in sound.items() if claim.audited},
        deliveries,
    )
    words = rules.boundary.coordinates
    accepted = {
        claim.client: (found.gradient[0][:words], found.gradient[1][:words])
        for claim, found in sound.items()
        if claim.client not in reasons
    }
    return Judgement(Verdict.of(accepted.keys(), reasons), accepted)


def check_deliveries(
    expected: Expected,
    claims: Sequence[Claim],
    deliveries: Mapping[ClientIndex, Delivery],
    report: Report = lambda claim, reason: None,
) -> dict[ClientIndex, Checked | FaultReason]:
    """What a member finds alone, on all of its cores: hashing does not hold the interpreter."""

    def check(claim: Claim) -> Checked | ProtocolError:
        try:
            return check_delivery(expected, claim, deliveries.get(claim.client))
        except ProtocolError as error:
            return error

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        checked = dict(zip(claims, pool.map(check, claims), strict=True))
    found: dict[ClientIndex, Checked | FaultReason] = {}
    for claim, result in checked.items():
        if isinstance(result, ProtocolError):
            report(claim, str(result))
            found[claim.client] = fault_of(result)
        else:
            found[claim.client] = result
    return found


def _subject(rules: Rules, weights: Weights, claims: Sequence[Claim]) -> bytes:
    """Return a digest of what must be the same for all members."""
    facts = [
        b"%d %d %s %s %d"
        % (
            c.client,
            c.round_number,
            c.commitment.hex().encode(),
            c.dataset_root.hex().encode(),
            c.audited,
        )
        for c in claims
    ]
    arrays = [np.ascontiguousarray(weights[name]).tobytes() for name in sorted(weights)]
    return keccak256(rules.policy.hash, rules.boundary.hash, b"\n".join(facts), *arrays)


def _unopened(session: Session, sound: Mapping[Claim, Checked]) -> dict[ClientIndex, FaultReason]:
    """Gate 1 of what is not audited, where commitments are opened inside MPC."""
    if not sound:
        return {}
    opened = open_trees(
        session,
        [
            TreeOpening(Subject.GRADIENT, claim.commitment, found.gradient)
            for claim, found in sound.items()
        ],
    )
    return {
        claim.client: FaultReason.COMMITMENT_MISMATCH
        for claim, opens in zip(sound, opened, strict=True)
        if not opens
    }


def _outside(
    session: Session,
    rules: Rules,
    weights: Weights,
    audited: Mapping[Claim, Checked],
    deliveries: Mapping[ClientIndex, Delivery],
) -> dict[ClientIndex, FaultReason]:
    """Both gates of what is audited, of which no more is known than whether all of it passed."""
    reasons: dict[ClientIndex, FaultReason] = {}
    claims = list(audited)
    while claims:
        size = next(size for size in BATCH_SIZES if size <= len(claims))
        batch, claims = claims[:size], claims[size:]
        contributions = [
            _contribution(rules, claim, audited[claim], deliveries[claim.client]) for claim in batch
        ]
        passed = audit(
            session,
            rules.replays(size),
            weights,
            rules.boundary,
            rules.policy.input_format,
            contributions,
        )
        reasons |= {
            claim.client: FaultReason.REPLAY_OUTSIDE
            for claim, inside in zip(batch, passed, strict=True)
            if not inside
        }
    return reasons


def _contribution(rules: Rules, claim: Claim, found: Checked, delivery: Delivery) -> Contribution:
    if found.training_input is None or delivery.training_input is None:
        raise AssertionError(f"client {claim.client} is audited without an input")
    trees = []
    if rules.policy.commitment_scheme is Scheme.MPC:
        commitment = delivery.training_input.commitment
        trees = [
            TreeOpening(Subject.GRADIENT, claim.commitment, found.gradient),
            TreeOpening(Subject.INPUT, commitment, found.training_input),
        ]
    gradient_words, input_words = rules.boundary.coordinates, rules.policy.input_format.words
    return Contribution(
        (found.gradient[0][:gradient_words], found.gradient[1][:gradient_words]),
        (found.training_input[0][:input_words], found.training_input[1][:input_words]),
        found.advice,
        trees,
    )
