"""A member does not contradict itself when it is asked twice."""

import threading

import pytest

from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.roles.member.store import SCHEMA, MemberStore
from opfl_chain.roles.state import State

ALICE, BOB = "0x" + "11" * 20, "0x" + "22" * 20


@pytest.fixture
def store(tmp_path):
    state = State(tmp_path / "state.sqlite", "member", SCHEMA)
    yield MemberStore(state)
    state.close()


def test_the_first_delivery_stays(store):
    assert store.keep_delivery(0, ALICE, b"first")
    assert store.keep_delivery(0, ALICE, b"first")
    assert not store.keep_delivery(0, ALICE, b"second")
    assert store.delivery(0, ALICE) == b"first"
    assert store.keep_delivery(1, ALICE, b"second") and store.keep_delivery(0, BOB, b"second")
    assert store.delivered(0) == {ALICE, BOB} and store.count_deliveries(0) == 2
    assert store.rounds_with_deliveries() == [0, 1]


def test_one_of_many_concurrent_deliveries_is_stored(store):
    kept = []

    def deliver(body):
        if store.keep_delivery(0, ALICE, body):
            kept.append(body)

    threads = [threading.Thread(target=deliver, args=(bytes([n]),)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept == [store.delivery(0, ALICE)]


def test_a_delivery_is_replaced_only_if_it_is_still_the_one_that_was_seen(store):
    store.keep_delivery(0, ALICE, b"first")
    assert not store.replace_delivery(0, ALICE, b"another", b"second")
    assert store.replace_delivery(0, ALICE, b"first", b"second")
    assert not store.replace_delivery(0, ALICE, b"first", b"third")
    assert store.delivery(0, ALICE) == b"second"


def test_deliveries_are_forgotten_by_round(store):
    for number in (0, 1):
        store.keep_delivery(number, ALICE, b"shares")
    store.forget_deliveries(0)
    assert store.delivery(0, ALICE) is None and store.delivery(1, ALICE) == b"shares"


def test_the_first_judgement_stays(store):
    first = Verdict.of({ClientIndex(0)}, {ClientIndex(1): FaultReason.REPLAY_OUTSIDE})
    store.keep_judgement(3, first)
    store.keep_judgement(3, Verdict.of({ClientIndex(1)}, {}))
    assert store.judgement(3).hash == first.hash and store.judgement(4) is None


def test_the_first_result_stays(store):
    store.keep_result(0, b"v", b"a", b"m")
    store.keep_result(0, b"v", b"a", b"another")
    assert store.result(0) == (b"v", b"a", b"m") and store.result(1) is None


def test_the_first_second_replay_stays(store):
    assert store.second_replay(0, ALICE) is None
    store.keep_second_replay(0, ALICE, passed=False)
    store.keep_second_replay(0, ALICE, passed=True)
    assert store.second_replay(0, ALICE) is False


def test_the_sum_of_one_verdict_alone_is_told(store):
    assert store.may_sum(0, b"verdict") and store.may_sum(0, b"verdict")
    assert not store.may_sum(0, b"another") and store.may_sum(1, b"another")


def test_a_partial_signature_is_replaced_because_a_reorganisation_changes_what_is_signed(store):
    store.keep_partial(0, b"message", b"signature")
    store.keep_partial(0, b"another", b"other")
    assert store.partial(0) == (b"another", b"other")
