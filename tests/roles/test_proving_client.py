"""A client that proves its steps: what it keeps and delivers, and when it sits a round out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from opfl_chain.protocol.exchange import Report, verdict_of

from opfl_chain.adversaries.clients import conduct_named
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.proved_step import proof_form, statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.mpc.audit.proved import examine
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.aggregate import weights_hash
from opfl_chain.protocol.delivery import Claim, Delivery, Expected, decode_delivery, encode_delivery
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.roles.client.conduct import Conduct, LocalContribution
from opfl_chain.roles.client.contribution import Contributor, unnamed
from opfl_chain.roles.client.store import SCHEMA, ClientStore
from opfl_chain.roles.state import State
from opfl_chain.rules.proved_rule import ProvedBoundary
from opfl_chain.rules.registry import rule_of

POLICY = default_policy("lenet-61706", rule="proved", batch_size=8)
BOUNDARY = reference_boundary(POLICY)
LAYOUT = model_of(POLICY).layout
WEIGHTS: NDArray[np.float32] = LAYOUT.flatten(initial_parameters(LAYOUT, 0))
CLIENT, ROUND = ClientIndex(3), RoundNumber(1)
NOTHING = BOUNDARY.model_copy(update={"relative_tolerance": 1, "absolute_tolerance": 1})
"""A boundary that no floating point keeps."""


def contributor(
    conduct: Conduct | None = None, boundary: ProvedBoundary = BOUNDARY, secret: bytes = b"\1" * 32
) -> Contributor:
    data = ClientData(POLICY, load_dataset("synthetic").train, 0)
    return Contributor(POLICY, boundary, data, secret, conduct or Conduct(), rounds=3)


def verdict(
    own: Contributor, made: LocalContribution, deliveries: list[Delivery]
) -> tuple[set[ClientIndex], dict[ClientIndex, FaultReason]]:
    """Return what three members find, each alone with what it received."""
    tolerance = rule_of(BOUNDARY).tolerance(BOUNDARY)
    assert tolerance is not None
    form = proof_form(POLICY, tolerance)
    statement = statement_of(POLICY, tolerance, LAYOUT.unflatten(WEIGHTS))
    commitment = own.committed_gradient(ROUND, made.gradient).commitment
    claim = Claim(CLIENT, ROUND, commitment, own.dataset.root, audited=True)
    reports, sheets = [], []
    for rank, delivery in enumerate(deliveries):
        words = POLICY.input_format.words
        expected = Expected(POLICY.commitment_scheme, rank, LAYOUT.size, words, 0, form)
        received = decode_delivery(encode_delivery(delivery), expected)
        rows, answers = examine(
            expected,
            statement,
            lambda each, given: unnamed(ROUND, weights_hash(WEIGHTS), each.commitment, given),
            [claim],
            {CLIENT: received},
        )
        reports.append(Report(rank, bytes(32), tuple(rows)))
        sheets.append(answers)
    found, _ = verdict_of([claim], reports, sheets)
    return set(found.passed), {fault.client: fault.reason for fault in found.faults}


def test_an_honest_step_passes_at_all_members() -> None:
    own = contributor()
    made = own.make(ROUND, WEIGHTS, b"")
    assert made.refusal == "" and made.proof is not None
    deliveries = list(own.deliveries(ROUND, made, audited=True))
    assert verdict(own, made, deliveries) == ({CLIENT}, {})


def test_a_restarted_client_delivers_the_same_bytes() -> None:
    first, second = contributor(), contributor()
    made, again = (each.make(ROUND, WEIGHTS, b"") for each in (first, second))
    assert made.proof == again.proof
    other = contributor(secret=b"\2" * 32).make(ROUND, WEIGHTS, b"")
    assert other.proof != made.proof
    for delivered, repeated in zip(
        first.deliveries(ROUND, made, audited=True),
        second.deliveries(ROUND, again, audited=True),
        strict=True,
    ):
        assert encode_delivery(delivered) == encode_delivery(repeated)


def test_nothing_of_a_proof_leaves_a_client_that_is_not_audited() -> None:
    own = contributor()
    made = own.make(ROUND, WEIGHTS, b"")
    for delivery in own.deliveries(ROUND, made, audited=False):
        assert delivery.proof is None and delivery.training_input is None


def test_a_client_sits_out_what_an_audit_would_reject() -> None:
    made = contributor(boundary=NOTHING).make(ROUND, WEIGHTS, b"")
    assert made.refusal.startswith("an audit would reject our own step: gradient.bound")
    assert "times the bound" in made.refusal


@pytest.mark.parametrize("factor", [16, 64, 2000, 1e30])
def test_a_client_sits_out_at_weights_that_no_proof_can_hold(tmp_path: Path, factor: float) -> None:
    made = contributor().make(ROUND, WEIGHTS * np.float32(factor), b"memory")
    assert made.refusal.startswith("the step cannot be proved: ")
    state = State(tmp_path / "state.sqlite", "client", SCHEMA)
    ClientStore(state).keep_contribution(ROUND, made)
    kept = ClientStore(state).contribution(ROUND)
    state.close()
    assert kept is not None
    assert (kept.refusal, kept.proof, kept.memory) == (made.refusal, None, b"memory")


@pytest.mark.parametrize("cheat", ["amplify:10", "amplify:1.0001", "reverse"])
def test_a_cheat_takes_part_and_fails(cheat: str) -> None:
    own = contributor(conduct_named(cheat))
    made = own.make(ROUND, WEIGHTS, b"")
    assert made.refusal == "" and made.failures
    deliveries = list(own.deliveries(ROUND, made, audited=True))
    assert verdict(own, made, deliveries) == (set(), {CLIENT: FaultReason.REPLAY_OUTSIDE})


def test_a_delivery_spoilt_for_one_member_charges_nobody() -> None:
    own = contributor(conduct_named("amplify:10"))
    made = own.make(ROUND, WEIGHTS, b"")
    other = contributor(secret=b"\2" * 32)
    theirs = other.deliveries(ROUND, other.make(ROUND, WEIGHTS, b""), audited=True)
    deliveries = list(own.deliveries(ROUND, made, audited=True))
    assert verdict(own, made, [theirs[0], *deliveries[1:]]) == (set(), {})
    both = [theirs[0], theirs[1], deliveries[2]]
    assert verdict(own, made, both) == (set(), {CLIENT: FaultReason.COMMITMENT_MISMATCH})
