"""Algorithm 1 of the paper on a whole round, from deliveries to the verdict: start reading here.

One member's side; all three run it at once, over a session. In the paper's notation, client i of
round t committed to its gradient G and is audited if a = 1. Public are the weights W, the policy
Pi, the boundary B, and the claim on chain: the commitments c_G and c_D, and a.

    line                                          here
    1     [b_G]: G opens c_G                      `check_deliveries`; `decide` and
                                                  `decide_openings` in scheme `mpc`
    3     [b_D]: the input opens a commitment     `check_deliveries`, with the Merkle path; `decide`
          in c_D                                  opens it in scheme `mpc`
    4     [G_MPC] <- Train_MPC                    `audit`: the replay, an SPU program
    5, 6  [b_B]: G is as close to G_MPC as B      `decide`: the boundary's rule
    7     [y] <- [b_G] and [b_D] and [b_B]        `decide`
    9     [y] <- [b_G], if a = 0                  `decide_openings`
    11    y <- Open([y])                          `_open`: one bit for each contribution
    12    return y                                `judge`: the verdict on all clients

Members compare what they found alone before they enter MPC, so that all take the same contributions
there. If a seat has changed since contributions were sealed, `parts_here` shares them anew. The
procedures `exchange_findings`, `share_anew`, `decide` and `decide_openings` run in each member's
SPU process; all else runs in the member itself.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opfl_chain.circuits.arithmetic import any_bit, join
from opfl_chain.circuits.boolean import BooleanCircuit, Shared, Transport
from opfl_chain.learning.proved_step import proof_form
from opfl_chain.learning.registry import advice_format_of
from opfl_chain.mpc.audit.checks import InputRules, input_faults, tree_faults
from opfl_chain.mpc.audit.contribution import Contribution, TreeOpening, replay_inputs
from opfl_chain.mpc.audit.resharing import AS_SEALED, Given, Parts, parts_here
from opfl_chain.mpc.session.agreement import Agreement
from opfl_chain.mpc.session.executable import Executable
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.mpc.session.session import Session
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.delivery import (
    Checked,
    Claim,
    Delivery,
    Expected,
    Held,
    check_delivery,
)
from opfl_chain.protocol.errors import DocumentError, ProtocolError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.package import ProofForm
from opfl_chain.protocol.verdict import Outcome, Verdict
from opfl_chain.protocol.widths import bytes32
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Evidence, Forms
from opfl_chain.rules.registry import installed_digests, rule_of

BATCH_SIZES = (16, 8, 4, 2, 1)
"""Numbers of contributions that are replayed side by side, with one executable each."""

Weights = Mapping[str, NDArray[np.float32]]
Report = Callable[[Claim, str], None]
"""Callback that receives the reason why a delivery was refused."""


@dataclass(frozen=True)
class Rules:
    """The rules by which a job is judged: Pi and B."""

    policy: Policy
    boundary: Boundary
    replays: Callable[[int], Executable]
    """Returns the replay for a number of contributions side by side."""

    def __post_init__(self) -> None:
        if self.boundary.policy_hash != "0x" + self.policy.hash.hex():
            raise DocumentError(
                f"the boundary is for policy {self.boundary.policy_hash}, the job has policy"
                f" 0x{self.policy.hash.hex()}: calibrate with the policy of the job"
            )
        if rule_of(self.boundary).replay != self.policy.replay.kind:
            raise DocumentError(
                f"a boundary of rule {self.boundary.rule} cannot be used with a"
                f" {self.policy.replay.kind} replay"
            )

    @cached_property
    def advice_format(self) -> AdviceFormat | None:
        """Format of the advice that clients deliver; None if the replay takes none."""
        return advice_format_of(self.policy)

    @cached_property
    def proof_form(self) -> ProofForm | None:
        """Form of the proofs that clients deliver; None if the committee replays steps."""
        tolerance = rule_of(self.boundary).tolerance(self.boundary)
        return proof_form(self.policy, tolerance) if tolerance else None

    def expected(self, rank: int) -> Expected:
        """Return what the member of this rank expects to be delivered."""
        return Expected(
            self.policy.commitment_scheme,
            rank,
            self.boundary.coordinates,
            self.policy.input_format.words,
            self.advice_format.words if self.advice_format else 0,
            self.proof_form,
        )


@dataclass(frozen=True)
class Judgement:
    """The verdict on a round, how its audits ended, and the components of accepted gradients."""

    verdict: Verdict
    outcomes: Mapping[ClientIndex, Outcome]
    """Outcomes of all audited clients. One whose answer is not valid has not answered."""
    accepted: Mapping[ClientIndex, Held]


def judge(
    session: Session,
    rules: Rules,
    weights: Weights,
    claims: Sequence[Claim],
    deliveries: Mapping[ClientIndex, Delivery],
    report: Report = lambda claim, reason: None,
    given: Given = AS_SEALED,
) -> Judgement:
    """Judge a round. All members call it with the same claims, in the same order.

    `deliveries` are of the rank that this member was `given`.
    """
    rank = given.ranks[session.rank]
    expected = rules.expected(session.rank if rank is None else rank)
    checked = check_deliveries(expected, claims, deliveries, report) if rank is not None else {}
    found_sound = compare_findings(session, rules, weights, claims, checked, given)
    sound = parts_here(session, expected, given, found_sound, checked)
    unaudited = {claim: found for claim, found in sound.items() if not claim.audited}
    if rules.policy.commitment_scheme is Scheme.MPC:  # a = 0; scheme `shares` is checked by now
        trees = [
            TreeOpening(Subject.GRADIENT, claim.commitment, found.gradient)
            for claim, found in unaudited.items()
        ]
        opened = open_trees(session, trees)
        unaudited = {
            claim: found for (claim, found), y in zip(unaudited.items(), opened, strict=True) if y
        }
    audited = {  # a = 1
        claim: _contribution(rules, claim, found, deliveries.get(claim.client), given)
        for claim, found in sound.items()
        if claim.audited
    }
    passed = audit(
        session,
        rules.replays,
        weights,
        rules.boundary,
        rules.policy.input_format,
        rules.advice_format,
        list(audited.values()),
    )
    outcomes = {claim.client: Outcome.UNANSWERED for claim in claims if claim.audited}
    for claim, y in zip(audited, passed, strict=True):
        outcomes[claim.client] = Outcome.PASSED if y else Outcome.OUTSIDE
    accepted = {
        claim.client: _first_words(found.gradient, rules.boundary.coordinates)
        for claim, found in sound.items()
        if claim in unaudited or outcomes.get(claim.client) is Outcome.PASSED
    }
    return Judgement(Verdict.of(accepted), outcomes, accepted)


# --- each member's own checks: b_G and b_D, as far as they need no MPC


def check_deliveries(
    expected: Expected,
    claims: Sequence[Claim],
    deliveries: Mapping[ClientIndex, Delivery],
    report: Report = lambda claim, reason: None,
) -> dict[Claim, Checked]:
    """Check this member's deliveries in threads: hashing releases the interpreter lock.

    Returns those without fault.
    """

    def check(claim: Claim) -> Checked | ProtocolError:
        try:
            return check_delivery(expected, claim, deliveries.get(claim.client))
        except ProtocolError as error:
            return error

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, claims))
    checked: dict[Claim, Checked] = {}
    for claim, result in zip(claims, results, strict=True):
        if isinstance(result, ProtocolError):
            report(claim, str(result))
        else:
            checked[claim] = result
    return checked


# --- findings compared


@dataclass(frozen=True)
class Finding:
    """A digest of the leaf hashes of a delivery, or zeros if there is a fault in it."""

    leaves: bytes = bytes(32)

    def encode(self) -> bytes:
        return bytes32("digest of leaves", self.leaves)


_FINDING_BYTES = 32


def compare_findings(
    session: Session,
    rules: Rules,
    weights: Weights,
    claims: Sequence[Claim],
    checked: Mapping[Claim, Checked],
    given: Given = AS_SEALED,
) -> list[Claim]:
    """Exchange findings with the peers and return the claims whose deliveries all found sound.

    They hold parts of one sharing. All members follow the protocol: nobody invents a fault.
    """
    findings = [
        Finding(checked[claim].leaves) if claim in checked else Finding() for claim in claims
    ]
    joint = session.call(
        exchange_findings,
        subject=subject_of(rules, weights, claims, given),
        plugins=installed_digests(rules.policy),
        findings=findings,
        holders=given.holders,
    )
    return [claim for claim, y in zip(claims, joint, strict=True) if y]


def subject_of(
    rules: Rules, weights: Weights, claims: Sequence[Claim], given: Given = AS_SEALED
) -> bytes:
    """Return a digest of the facts that must be the same for all members."""
    facts = [
        f"{c.client} {c.round_number} {c.commitment.hex()} {c.dataset_root.hex()} {c.audited:d}"
        for c in claims
    ]
    if not given.is_as_sealed:
        facts.append(f"given {given.ranks}")
    arrays = [np.ascontiguousarray(weights[name]).tobytes() for name in sorted(weights)]
    return keccak256(rules.policy.hash, rules.boundary.hash, "\n".join(facts).encode(), *arrays)


def exchange_findings(
    runtime: Runtime,
    *,
    subject: bytes,
    plugins: dict[str, str],
    findings: list[Finding],
    holders: Sequence[int] = AS_SEALED.holders,
) -> list[bool]:
    """Procedure: agree on the round and on plug-ins; return whether all found the same delivery.

    Of those who hold parts of it: findings of others say nothing.
    """
    runtime.agree(Agreement("findings on a round", "", subject.hex(), plugins))
    ours = b"".join(finding.encode() for finding in findings)
    tables = {runtime.rank: ours}
    for peer, table in runtime.exchange(ours).items():
        if len(table) != len(ours):
            reason = f"findings of {len(table)} bytes instead of {len(ours)}"
            raise runtime.invalid(peer, reason)
        tables[peer] = table
    rows = range(0, len(ours), _FINDING_BYTES)
    return [_same([tables[each][at : at + _FINDING_BYTES] for each in holders]) for at in rows]


def _same(findings: Sequence[bytes]) -> bool:
    return len(set(findings)) == 1 and any(findings[0])


# --- a = 0: gate 1 alone, inside MPC


def open_trees(session: Session, trees: Sequence[TreeOpening]) -> list[bool]:
    """Return y for contributions that are not audited: whether their gradients open c_G."""
    return session.call(decide_openings, trees=list(trees)) if trees else []


def decide_openings(transport: Transport, *, trees: list[TreeOpening]) -> list[bool]:
    """Procedure: return whether each tree opens its commitment."""
    circuit = BooleanCircuit(transport, secrets.token_bytes(32))
    faults = [tree_faults(circuit, t.subject.tag, t.commitment, t.opening) for t in trees]
    return _open(circuit, faults)


# --- a = 1: both gates, inside MPC


def audit(
    session: Session,
    replays: Callable[[int], Executable],
    weights: Weights,
    boundary: Boundary,
    input_format: InputFormat,
    advice_format: AdviceFormat | None,
    contributions: Sequence[Contribution],
) -> list[bool]:
    """Return y for audited contributions, of which as many as possible are replayed at once."""
    passed: list[bool] = []
    while waiting := contributions[len(passed) :]:
        size = next(size for size in BATCH_SIZES if size <= len(waiting))
        replay, batch = replays(size), waiting[:size]
        inputs = replay_inputs(session.rank, replay, input_format, advice_format, batch)
        outputs = session.run(replay, {**weights, **inputs}).outputs
        passed += session.call(
            decide,
            boundary=boundary,
            forms=Forms(input_format.feature_words, advice_format),
            input_rules=InputRules.of(input_format),
            evidence=[each.evidence(outputs, place) for place, each in enumerate(batch)],
            trees=[list(each.trees) for each in batch],
        )
    return passed


def decide(
    transport: Transport,
    *,
    boundary: Boundary,
    forms: Forms,
    input_rules: InputRules,
    evidence: list[Evidence],
    trees: list[list[TreeOpening]],
) -> list[bool]:
    """Procedure: return y of audited contributions. Intermediate values stay secret."""
    circuit = BooleanCircuit(transport, secrets.token_bytes(32))
    rule = rule_of(boundary)
    faults = [
        join(
            rule.faults(circuit, boundary, each, forms),
            input_faults(circuit, input_rules, each.training_input),
            *(tree_faults(circuit, t.subject.tag, t.commitment, t.opening) for t in openings),
        )
        for each, openings in zip(evidence, trees, strict=True)
    ]
    return _open(circuit, faults)


def _open(circuit: BooleanCircuit, faults: Sequence[Shared]) -> list[bool]:
    """Open one bit for each array: whether all of its words are zero."""
    found = join(*(any_bit(circuit, words) for words in faults))
    return [bool(bit == 0) for bit in circuit.open(found)]


def _contribution(
    rules: Rules, claim: Claim, found: Parts, delivery: Delivery | None, given: Given
) -> Contribution:
    if found.training_input is None:
        raise AssertionError(f"client {claim.client} is audited without an input")
    trees: tuple[TreeOpening, ...] = ()
    if rules.policy.commitment_scheme is Scheme.MPC:
        own = delivery.training_input if delivery is not None else None
        commitment = own.commitment if own is not None else given.inputs[claim.client]
        trees = (
            TreeOpening(Subject.GRADIENT, claim.commitment, found.gradient),
            TreeOpening(Subject.INPUT, commitment, found.training_input),
        )
    return Contribution(
        _first_words(found.gradient, rules.boundary.coordinates),
        _first_words(found.training_input, rules.policy.input_format.words),
        found.advice,
        trees,
    )


def _first_words(held: Held, count: int) -> Held:
    """Return components without those of the salt, which follow the words in scheme `mpc`."""
    return held[0][:count], held[1][:count]
