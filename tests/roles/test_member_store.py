"""A member does not contradict itself when it is asked twice, or after a reorganisation."""

import pytest

from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.echo import Signed, Slot
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.roll import RollEntry
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.member.store import SCHEMA, MemberStore, SignedBundle
from opfl_chain.roles.state import State

ALICE, BOB = "0x" + "11" * 20, "0x" + "22" * 20
HERE, ELSEWHERE = b"\1" * 32, b"\2" * 32
FIRST, SECOND = Signed(b"first", b"\1" * 65), Signed(b"second", b"\2" * 65)


@pytest.fixture
def store(tmp_path):
    state = State(tmp_path / "state.sqlite", "member", SCHEMA)
    yield MemberStore(state)
    state.close()


def test_the_first_message_of_a_slot_is_what_a_member_says_and_the_second_is_evidence(store):
    for message in (FIRST, SECOND, FIRST):
        store.keep_message(HERE, Slot.LIST, ALICE, message)
    assert store.first_message(HERE, Slot.LIST, ALICE) == FIRST
    assert store.messages(HERE, Slot.LIST, ALICE) == [FIRST, SECOND]
    assert store.message(HERE, Slot.LIST, ALICE, SECOND.hash) == SECOND
    assert store.first_message(ELSEWHERE, Slot.LIST, ALICE) is None
    assert store.first_message(HERE, Slot.LIST, BOB) is None


def test_findings_of_an_opening_stand(store):
    entry = RollEntry(ClientIndex(0), ALICE, b"\3" * 32, b"\4" * 32)
    other = RollEntry(ClientIndex(0), ALICE, b"\5" * 32, b"\6" * 32)
    for entries in ([entry], [other]):
        store.keep_roll(HERE, entries)
    for passes in (b"\1", b"\2"):
        store.keep_verdict(HERE, passes)
    for outcome in (Outcome.PASSED, Outcome.OUTSIDE):
        store.keep_outcome(HERE, ALICE, outcome)
    assert store.roll(HERE) == [entry] and store.roll(ELSEWHERE) == []
    assert store.verdict(HERE) == b"\1" and store.verdict(ELSEWHERE) is None
    assert store.outcome(HERE, ALICE) is Outcome.PASSED
    assert store.outcome(ELSEWHERE, ALICE) is None


def test_the_sum_of_one_verdict_of_an_opening_is_revealed(store):
    assert store.may_sum(HERE, b"one") and store.may_sum(HERE, b"one")
    assert not store.may_sum(HERE, b"another")
    assert store.may_sum(ELSEWHERE, b"another")


def test_a_referee_never_sees_a_whole_contribution_also_not_in_several_sessions(store):
    assert [store.may_show(HERE, BOB, ALICE, k, most=2) for k in (0, 2, 1, 0)] == [
        True,
        True,
        False,
        True,
    ]
    assert store.may_show(ELSEWHERE, BOB, ALICE, 1, most=2)
    assert store.may_show(HERE, "another", ALICE, 1, most=2), "each is counted by itself"


def test_echoes_that_counted_are_fixed_when_a_step_ends(store):
    assert store.concluded(HERE, Slot.LIST) is None
    store.keep_concluded(HERE, Slot.LIST, {0, 2})
    store.keep_concluded(HERE, Slot.LIST, {0, 1, 2})
    assert store.concluded(HERE, Slot.LIST) == {0, 2}


def test_hearings_that_find_a_contribution_outside_are_counted_once_each(store):
    assert [store.keep_found_outside(HERE, ALICE, n) for n in (0, 0, 3)] == [1, 1, 2]


def test_bundles_are_kept_by_client_and_forgotten_with_the_round(store):
    kind = BundleKind.CONTRIBUTION
    for number in (2, 1):
        bundle = SignedBundle(bytes([number]) * 32, b"body", b"signature")
        store.keep_bundle(HERE, kind, ALICE, bundle)
    assert store.bundle_hashes(HERE, kind) == {ALICE: [b"\1" * 32, b"\2" * 32]}
    assert store.bundle_hashes(HERE, BundleKind.ANSWER) == {}
    assert store.openings() == [HERE]
    store.forget(HERE)
    assert store.openings() == [] and store.bundle(HERE, kind, ALICE, b"\1" * 32) is None
