"""A member's signatures: with its peers if they answer, and on its own before it would pay."""

from dataclasses import replace

import pytest
from roles_support import World

from opfl_chain.chain import bls


@pytest.fixture(scope="module")
def job(rehearsal, tmp_path_factory):
    with World(rehearsal, tmp_path_factory.mktemp("world"), clients=1, rounds=20) as world:
        yield world


@pytest.fixture
def world(job, rehearsal):
    """A closed round. The one before it is void."""
    if job.round is not None:
        rehearsal.mine_past(job.round.schedule.attest)
        rehearsal.send(rehearsal.operator, rehearsal.contracts.jobs.void_round(job.round_id))
    job.open()
    rehearsal.mine_past(job.round.schedule.commit)
    job.catch_up()
    return job


def at(world, place):
    """The member with this place in the round."""
    return world.members[(place + world.round.number) % 3]


def act(world, place, **changes):
    member = at(world, place)
    now = replace(member.catch_up(), **changes)
    member.beacon.act(member.view.latest_round(), now)
    member.catch_up()
    return member.view.latest_round()


def test_nothing_is_signed_before_the_round_is_closed(world):
    commit = world.round.schedule.commit
    act(world, 0, seen=commit - 1)
    assert at(world, 0).store.partial(world.round.number) is None


def test_the_one_whose_turn_it_is_publishes_what_all_signed(world):
    commit = world.round.schedule.commit
    for place in (1, 2):
        assert act(world, place, head=commit).seed is None, "they wait for their turn"
    assert act(world, 0, head=commit).seed is not None
    seed = world.rehearsal.contracts.beacon.seed_of(world.round_id)
    assert at(world, 0).view.latest_round().seed == seed


def test_when_a_peer_is_silent_each_publishes_its_own_before_the_deadline(world):
    deadline = world.round.schedule.beacon
    for place in (0, 1):
        before = {at(world, earlier).address for earlier in range(place)}
        assert act(world, place, head=deadline - 17).seed is None
        assert at(world, place).view.published_partials(world.round_id) == before
        act(world, place, head=deadline - 16)
        act(world, place, head=deadline - 16)
    published = at(world, 1).view.published_partials(world.round_id)
    assert published == {at(world, 0).address, at(world, 1).address}
    assert act(world, 2, head=deadline - 16).seed is not None, "the third settles it"


def test_after_the_deadline_nothing_is_sent(world):
    deadline = world.round.schedule.beacon
    act(world, 0, head=deadline)
    assert at(world, 0).view.published_partials(world.round_id) == set()


def test_a_wrong_signature_of_a_peer_is_not_published(world):
    commit = world.round.schedule.commit
    for place in (1, 2):
        act(world, place, head=commit)
    store, number = at(world, 1).store, world.round.number
    message, _ = store.partial(number)
    wrong = bls.SecretKey(bytes(31) + b"\5").sign(message)
    store.keep_partial(number, message, wrong.eip2537())
    assert act(world, 0, head=commit).seed is None
    store.keep_partial(number, message, b"\xff" * 128)
    assert act(world, 0, head=commit).seed is None


def test_a_peer_without_an_endpoint_costs_nobody_anything(rehearsal, tmp_path):
    """Its signature is missing; ours goes on chain all the same."""
    with World(rehearsal, tmp_path, clients=1, ranks=(0,)) as world:
        world.open()
        rehearsal.mine_past(world.round.schedule.commit)
        act(world, 0)
        deadline = world.round.schedule.beacon
        act(world, 0, head=deadline - 1)
        assert world.member.view.published_partials(world.round_id) == {world.member.address}


def test_message_changed_by_a_reorganisation_is_signed_anew(world):
    number, commit = world.round.number, world.round.schedule.commit
    act(world, 0, head=commit)
    store = at(world, 0).store
    before = store.partial(number)
    store.keep_partial(number, b"another message", before[1])
    act(world, 0, head=commit)
    assert store.partial(number) == before
