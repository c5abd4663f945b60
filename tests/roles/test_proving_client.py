"""A client that proves its steps: what it keeps and delivers, and when it sits a round out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from proving_support import (
    BOUNDARY,
    CLIENT,
    ROUND,
    WEIGHTS,
    contributor,
    found_by_members,
)

from opfl_chain.adversaries.clients import conduct_named
from opfl_chain.protocol.delivery import encode_delivery
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.roles.client import conduct
from opfl_chain.roles.client.store import SCHEMA, ClientStore
from opfl_chain.roles.state import State

NOTHING = BOUNDARY.model_copy(update={"relative_tolerance": 1, "absolute_tolerance": 1})
"""A boundary that no floating point keeps."""


def test_an_honest_step_passes_at_all_members() -> None:
    own = contributor()
    made = own.make(ROUND, WEIGHTS, b"")
    assert made.refusal == "" and made.proof is not None
    deliveries = list(own.deliveries(ROUND, made, audited=True))
    assert found_by_members(own, made, deliveries) == ({CLIENT}, {})


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


def test_a_client_without_memory_for_its_proof_sits_out(monkeypatch: pytest.MonkeyPatch) -> None:
    own = contributor()

    def prove(*given: object) -> None:
        raise MemoryError("Unable to allocate 9 EiB")

    monkeypatch.setattr(conduct, "Prover", prove)
    made = own.make(ROUND, WEIGHTS, b"memory")
    assert made.refusal == (
        "the step cannot be proved: this machine has no memory for the proof of our step: Unable to"
        " allocate 9 EiB"
    )
    assert (made.proof, made.memory) == (None, b"memory")


@pytest.mark.parametrize("cheat", ["amplify:10", "amplify:1.0001", "reverse", "forge"])
def test_a_cheat_takes_part_and_fails(cheat: str) -> None:
    own = contributor(conduct_named(cheat))
    made = own.make(ROUND, WEIGHTS, b"")
    assert made.refusal == "" and made.failures
    deliveries = list(own.deliveries(ROUND, made, audited=True))
    assert found_by_members(own, made, deliveries) == (set(), {CLIENT: FaultReason.REPLAY_OUTSIDE})


def test_a_delivery_spoilt_for_one_member_charges_nobody() -> None:
    own = contributor(conduct_named("amplify:10"))
    made = own.make(ROUND, WEIGHTS, b"")
    other = contributor(secret=b"\2" * 32)
    theirs = other.deliveries(ROUND, other.make(ROUND, WEIGHTS, b""), audited=True)
    deliveries = list(own.deliveries(ROUND, made, audited=True))
    assert found_by_members(own, made, [theirs[0], *deliveries[1:]]) == (set(), {})
    both = [theirs[0], theirs[1], deliveries[2]]
    assert found_by_members(own, made, both) == (set(), {CLIENT: FaultReason.COMMITMENT_MISMATCH})
