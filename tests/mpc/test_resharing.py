"""Contributions that are judged by others than those they were sealed to."""

from dataclasses import replace

import numpy as np
import protocol_vectors as vectors
import pytest
from judged_round import ROUND, STEP, Client, judgements, rules
from protocol_vectors import columns

from opfl_chain.mpc.audit import resharing
from opfl_chain.mpc.audit.judge import judge
from opfl_chain.mpc.audit.resharing import Given, parts_here
from opfl_chain.mpc.local import MemoryCommittee
from opfl_chain.mpc.session.errors import ProgramMismatch
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import Expected, check_delivery
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.verdict import Outcome

BOTH = pytest.mark.parametrize("scheme", list(Scheme), ids=lambda scheme: scheme.value)
SEATINGS = pytest.mark.parametrize(
    "ranks", [(None, 1, 2), (None, 0, 2), (2, None, 0), (1, 2, 0)], ids=str
)
"""A newcomer with two who kept their seats, and with members that have come back to others."""


@pytest.fixture(scope="module")
def committee():
    with MemoryCommittee() as committee:
        yield committee


def given_to(ranks, clients):
    return Given(ranks, {each.index: each.inputs[ROUND].commitment for each in clients})


@BOTH
def test_whoever_has_the_seats_finds_the_same(committee, scheme):
    ranks = (None, 0, 2)
    honest, unaudited = Client(0, scheme), Client(1, scheme, audited=False)
    cheat = Client(4, scheme, gradient=2 * STEP.gradient)
    clients = [honest, unaudited, cheat]
    for found in judgements(committee, scheme, clients, given=given_to(ranks, clients)):
        assert found.verdict.passed == {0, 1}
        assert found.outcomes == {0: Outcome.PASSED, 4: Outcome.OUTSIDE}


def test_what_one_of_those_who_were_given_parts_finds_wrong_is_not_judged(committee):
    client, ranks = Client(0, Scheme.SHARES), (None, 0, 2)
    client.redeliver(2, training_input=None)
    (first, *_) = judgements(committee, Scheme.SHARES, [client], given=given_to(ranks, [client]))
    assert first.outcomes == {0: Outcome.UNANSWERED}


def test_members_that_differ_in_who_was_given_what(committee):
    client = Client(0, Scheme.SHARES)

    def member(session):
        told = (None, 1, 2) if session.rank == 2 else (None, 0, 2)
        rank = told[session.rank]
        delivered = {} if rank is None else {0: client.deliveries[rank]}
        claims, given = [client.claim], Given(told)
        return judge(session, rules(Scheme.SHARES), STEP.weights, claims, delivered, given=given)

    with pytest.raises(ProgramMismatch, match="findings on a round"):
        committee.each(member)


def shared_anew(committee, ranks, heard):
    """Share a contribution anew; return its components and those of every member."""
    client = Client(0, Scheme.SHARES)
    form = Expected(Scheme.SHARES, 0, len(STEP.gradient), len(STEP.training_input))
    given, receive = Given(ranks), Runtime.receive

    def kept(runtime, rank):
        heard[runtime.rank].append(receive(runtime, rank))
        return heard[runtime.rank][-1]

    def member(session):
        rank = ranks[session.rank]
        checked = {}
        if rank is not None:
            expected = replace(form, rank=rank)
            checked[client.claim] = check_delivery(expected, client.claim, client.deliveries[rank])
        return parts_here(session, form, given, [client.claim], checked)[client.claim].gradient

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runtime, "receive", kept)
        held = committee.each(member)
    components = {}
    for delivery in client.deliveries:
        for part in delivery.gradient.held:
            components[part.index] = part.words(len(STEP.gradient))
    return components, held


def shown(components, ranks, heard, held):
    """Components that some member sees and was not given."""
    seen = set()
    for rank, given in enumerate(ranks):
        known = set(held_indices(given)) if given is not None else set()
        for index in {0, 1, 2} - known:
            words = components[index].tobytes()
            texts = [*heard[rank], *(part.tobytes() for part in held[rank])]
            if any(words[:64] in text for text in texts):
                seen.add((rank, index))
    return seen


@SEATINGS
def test_nobody_learns_a_component_that_it_was_not_given(committee, ranks):
    heard = {rank: [] for rank in range(3)}
    components, held = shared_anew(committee, ranks, heard)
    first, second, third = (held[rank][0] for rank in range(3))
    total = (first + second + third).view(np.int64)
    assert np.array_equal(total, STEP.gradient)
    assert all(np.array_equal(held[r][1], held[(r + 1) % 3][0]) for r in range(3))
    assert shown(components, ranks, heard, held) == set()


def test_without_fresh_randomness_it_would(committee, monkeypatch):
    monkeypatch.setattr(resharing, "expand", lambda seed, count: np.zeros(count, np.uint64))
    heard, ranks = {rank: [] for rank in range(3)}, (1, None, 0)
    components, held = shared_anew(committee, ranks, heard)
    assert shown(components, ranks, heard, held)


def test_vectors():
    vector = vectors.load("resharing")
    components, seeds = [words_of(each) for each in vector["components"]], vector["seeds"]
    for ranks, dealt, shared in columns(vector, "given", "dealt", "shared"):
        given = Given(tuple(None if rank < 0 else rank for rank in ranks))
        assert [given.dealt_by(rank) for rank in range(3)] == dealt
        for rank, expected in enumerate(shared):
            own = sum((components[k] for k in dealt[rank]), np.zeros(4, np.uint64))
            found = resharing.first_component(own, seeds[rank], seeds[rank - 1])
            assert np.array_equal(found, words_of(expected))


def words_of(data):
    return np.frombuffer(data, "<u8")


def test_who_must_be_there_to_know_all_components():
    assert Given((None, 0, 2)).is_enough and Given((1, 0, None)).is_enough
    assert not Given((None, 0, None)).is_enough and not Given((None, None, None)).is_enough
