"""A client that proves its steps: what it keeps and sends, and when it sits a round out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from proving_support import (
    BOUNDARY,
    OPENING,
    ROUND,
    WEIGHTS,
    contributor,
    found_by_members,
    sealed,
)

from opfl_chain.adversaries.clients import conduct_named, spoiled
from opfl_chain.protocol.audit_exchange import Conclusion
from opfl_chain.protocol.bundle import BundleKind, contribution_parts
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.client.conduct import LocalContribution
from opfl_chain.roles.client.store import SCHEMA, ClientStore
from opfl_chain.roles.state import State

NOTHING = BOUNDARY.model_copy(update={"relative_tolerance": 1, "absolute_tolerance": 1})
"""A boundary that no floating point keeps."""


def test_an_honest_step_passes_at_all_members() -> None:
    own = contributor()
    made = own.make(ROUND, OPENING, WEIGHTS, b"")
    assert made.refusal == "" and made.proof is not None
    assert found_by_members(own, made) == Conclusion(Outcome.PASSED)


def test_a_restarted_client_sends_the_same_bytes_and_another_opening_gets_others() -> None:
    first, second = contributor(), contributor()
    made, again = (each.make(ROUND, OPENING, WEIGHTS, b"") for each in (first, second))
    assert made.proof == again.proof
    other = contributor(secret=b"\2" * 32).make(ROUND, OPENING, WEIGHTS, b"")
    assert other.proof != made.proof
    for kind in BundleKind:
        assert sealed(first, kind, made).encode() == sealed(second, kind, again).encode()
    reopened = first.make(ROUND, b"\3" * 32, WEIGHTS, b"")
    np.testing.assert_array_equal(reopened.gradient, made.gradient)
    assert reopened.proof != made.proof, "masks of a proof are used once"
    for kind in BundleKind:
        ours, theirs = sealed(first, kind, made), sealed(first, kind, reopened, b"\3" * 32)
        assert not set(ours.bodies) & set(theirs.bodies)


def test_nothing_of_input_or_proof_is_in_a_contribution() -> None:
    own = contributor()
    made = own.make(ROUND, OPENING, WEIGHTS, b"")
    parts = own.parts(BundleKind.CONTRIBUTION, ROUND, OPENING, made)
    gradient = own.committed_gradient(OPENING, made.gradient)
    assert parts == contribution_parts(gradient)


def test_a_client_sits_out_what_an_audit_would_reject() -> None:
    made = contributor(boundary=NOTHING).make(ROUND, OPENING, WEIGHTS, b"")
    assert made.refusal.startswith("an audit would reject our own step: gradient.bound")
    assert "times the bound" in made.refusal


@pytest.mark.parametrize("factor", [16, 64, 2000, 1e30])
def test_a_client_sits_out_at_weights_that_no_proof_can_hold(tmp_path: Path, factor: float) -> None:
    made = contributor().make(ROUND, OPENING, WEIGHTS * np.float32(factor), b"memory")
    assert made.refusal.startswith("the step cannot be proved: ")
    state = State(tmp_path / "state.sqlite", "client", SCHEMA)
    ClientStore(state).keep_contribution(OPENING, ROUND, made)
    kept = ClientStore(state).contribution(OPENING)
    state.close()
    assert kept is not None
    assert (kept.refusal, kept.proof, kept.memory) == (made.refusal, None, b"memory")


@pytest.mark.parametrize("cheat", ["amplify:10", "amplify:1.0001", "reverse"])
def test_a_cheat_takes_part_and_fails(cheat: str) -> None:
    own = contributor(conduct_named(cheat))
    made = own.make(ROUND, OPENING, WEIGHTS, b"")
    assert made.refusal == "" and made.failures
    assert found_by_members(own, made) == Conclusion(Outcome.OUTSIDE)


def test_an_answer_spoilt_for_one_member_is_no_answer() -> None:
    """The client alone can spoil it, and whoever cannot open it shows that to everybody."""
    own = contributor(conduct_named("amplify:10"))
    made = own.make(ROUND, OPENING, WEIGHTS, b"")
    answer = sealed(own, BundleKind.ANSWER, made)
    assert found_by_members(own, made, spoiled(answer)) == Conclusion(Outcome.UNANSWERED)


def test_contributions_are_kept_by_opening_and_forgotten_by_round(tmp_path: Path) -> None:
    state = State(tmp_path / "state.sqlite", "client", SCHEMA)
    store = ClientStore(state)
    for number, opening in [(0, b"a"), (1, b"b"), (1, b"c"), (2, b"d")]:
        made = LocalContribution(np.zeros(2, np.float32), None, b"memory of " + opening)
        store.keep_contribution(opening * 32, number, made)
        store.keep_delivered(opening * 32, BundleKind.CONTRIBUTION, "0xmember")
    assert store.last_memory(0) == b""
    assert store.last_memory(2) == b"memory of c", "the last branch counts"
    store.forget_before(2)
    assert [store.contribution(each * 32) is None for each in (b"a", b"b", b"c", b"d")] == [
        True,
        True,
        True,
        False,
    ]
    assert store.delivered(b"a" * 32, BundleKind.CONTRIBUTION) == set()
    assert store.delivered(b"d" * 32, BundleKind.CONTRIBUTION) == {"0xmember"}
    store.forget_before(9)
    assert store.last_memory(9) == b"memory of d", "the memory goes on"
    state.close()
