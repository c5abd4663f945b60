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
from opfl_chain.protocol.bundle import contribution_parts
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.shares import components_of
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.client.conduct import Conduct, FinishedStep, LocalContribution, Vector
from opfl_chain.roles.client.contribution import Contributor
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


class Unsteady(Conduct):
    """Finds another gradient whenever it trains, as where sums are added up in any order."""

    def gradient(self, step: FinishedStep, memory: bytes) -> tuple[Vector, bytes]:
        noise = np.random.default_rng().standard_normal(step.gradient.size) * 1e-6
        return (step.gradient + noise).astype(np.float32), memory


class MasksByOpening(Contributor):
    """The defence off: masks of a gradient follow from secret and opening alone."""

    def _entropy(self, purpose: str, *of: bytes) -> bytes:
        return super()._entropy(purpose, of[0])


@pytest.mark.parametrize(("kind", "leaks"), [(Contributor, False), (MasksByOpening, True)])
def test_a_client_that_lost_its_state_does_not_show_how_two_gradients_differ(
    kind: type[Contributor], leaks: bool
) -> None:
    """Holders of component 2 keep both: under the same masks they would see the difference."""
    gradients, masked = [], []
    for _ in range(2):
        own = contributor(Unsteady(), kind=kind)
        made = own.make(ROUND, OPENING, WEIGHTS, b"")
        parts = components_of(own.committed_gradient(OPENING, made.gradient).packages)
        gradients.append(parts[0] + parts[1] + parts[2])
        masked.append(parts[2])
    differs = gradients[1] - gradients[0]
    assert differs.any()
    assert np.array_equal(masked[1] - masked[0], differs) is leaks


@pytest.mark.parametrize(("kind", "leaks"), [(Contributor, False), (MasksByOpening, True)])
def test_advice_that_differs_has_other_masks(kind: type[Contributor], leaks: bool) -> None:
    own = contributor(kind=kind)
    advised = [np.arange(9, dtype=np.int64), np.arange(9, dtype=np.int64) ** 2]
    parts = []
    for advice in advised:
        packages = own.advice(OPENING, LocalContribution(np.zeros(0, np.float32), advice, b""))
        assert packages is not None
        parts.append(components_of(packages)[2].view(np.int64))
    assert np.array_equal(parts[1] - parts[0], advised[1] - advised[0]) is leaks


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
