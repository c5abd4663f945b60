"""Sums of all that passed: opened once for each round, for the decided verdict."""

from dataclasses import replace

import numpy as np
import pytest
from roles_support import World

from opfl_chain.protocol.aggregate import NOTHING, aggregate_hash
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.roles.member.sums import Sums, SumsDiffer
from opfl_chain.transport.errors import PeerRefused
from opfl_chain.transport.routes import Response, Route
from opfl_chain.transport.server import HttpServer

PASSED = Verdict.of({ClientIndex(0), ClientIndex(2)}, {ClientIndex(1): FaultReason.REPLAY_OUTSIDE})


@pytest.fixture(scope="module")
def world(rehearsal, tmp_path_factory):
    with World(rehearsal, tmp_path_factory.mktemp("world"), clients=3) as world:
        yield world


def decide(world, verdict):
    world.open()
    world.settle()
    for member in world.members.values():
        for maker in world.makers:
            world.deliver(maker, member=member)
    world.rehearsal.attest(world.round_id, verdict, (0, 1))
    world.catch_up()


def expected_sum(world, indices):
    gradients = [world.makers[i].gradient(world.round.number) for i in indices]
    return np.sum(gradients, axis=0)


@pytest.fixture(scope="module")
def decided(world):
    """Two rounds with one and the same verdict; the first is over."""
    decide(world, PASSED)
    first = [member.sums.open(world.round) for member in world.members.values()]
    for words in first:
        assert np.array_equal(words, expected_sum(world, (0, 2)))
    world.rehearsal.finalise(world.round_id, aggregate_hash(first[0]), b"\2" * 32)
    world.catch_up()
    decide(world, PASSED)
    return world


def test_rounds_with_equal_verdicts_have_their_own_sums(decided):
    for member in decided.members.values():
        words = member.sums.open(decided.round)
        assert np.array_equal(words, expected_sum(decided, (0, 2)))


def test_all_open_the_same_sum_from_all_members(decided):
    member = decided.member
    words = Sums(member.view, member.peers).open(decided.round)
    assert np.array_equal(words, expected_sum(decided, (0, 2)))


def test_components_of_one_member_are_not_the_sum(decided):
    for member in decided.members.values():
        own, following = member.sums.held(decided.round)
        wanted = expected_sum(decided, (0, 2)).view("<u8")
        for known in (own, following, own + following):
            assert (known == wanted).sum() < 3


def test_no_second_sum_of_a_round_for_another_verdict(decided):
    """For example after a reorganisation. The difference would be somebody's gradient."""
    member = decided.member
    member.sums.held(decided.round)
    other = Verdict.of({ClientIndex(0), ClientIndex(1)}, {})
    assert not member.store.may_sum(decided.round.number, other.hash)
    changed = replace(decided.round, verdict_hash=other.hash)
    assert member.sums.held(changed) is None


def test_a_round_that_is_over_is_not_added_up_again(decided):
    member = decided.member
    first = member.view.rounds()[0]
    assert member.sums.held(first) is not None, "it is kept for who is late"
    member.sums._kept.clear()
    assert member.sums.held(first) is None


def test_a_sum_of_which_a_part_is_missing_here_is_not_told(decided):
    member = decided.members[2]
    member.sums._kept.clear()
    member.store.forget_deliveries(decided.round.number)
    assert member.sums.held(decided.round) is None
    with pytest.raises(PeerRefused):
        path = f"/rounds/{decided.round_id}/sum"
        decided.http.get(member.http.url, "", path, 1 << 22)
    words = member.sums.open(decided.round)
    assert np.array_equal(words, expected_sum(decided, (0, 2))), "the others have all of it"


def test_members_that_say_different_things_of_a_component_are_noticed(decided, tmp_path):
    member = decided.member
    body = bytearray(
        b"".join(
            part.astype("<u8").tobytes() for part in decided.members[1].sums.held(decided.round)
        )
    )
    body[-1] ^= 1
    route = Route("GET", "/rounds/{round}/sum", lambda _: Response.binary(bytes(body)))
    with HttpServer("127.0.0.1:0", [route]) as liar:
        call = decided.rehearsal.contracts.jobs.announce_endpoint(decided.job_id, liar.url)
        decided.rehearsal.send(decided.rehearsal.members[2], call)
        member.catch_up()
        with pytest.raises(SumsDiffer, match="member 2 reports another value of component"):
            Sums(member.view, member.peers).open(decided.round)
        body.pop()
        assert member.sums.open(decided.round) is not None, "too short is no answer"


def test_a_sum_of_fewer_than_two_is_never_opened(rehearsal, tmp_path):
    with World(rehearsal, tmp_path, clients=2) as world:
        decide(world, Verdict.of({ClientIndex(0)}, {}))
        for member in world.members.values():
            assert member.sums.held(world.round) is None
            assert member.sums.open(world.round) is NOTHING
