"""A member's signatures: with its peers if they answer, and on its own before it would pay."""

from dataclasses import replace

import pytest
from node_stage import World

from opfl_chain.chain import bls


@pytest.fixture
def world(stage, tmp_path):
    """A round that is closed."""
    with World(stage, tmp_path, clients=1) as world:
        world.open()
        stage.mine_past(world.round.schedule.commit)
        world.catch_up()
        yield world


def act(world, rank, **changes):
    member = world.members[rank]
    now = replace(member.catch_up(), **changes)
    member.beacon.act(member.view.latest_round(), now)
    member.catch_up()
    return member.view.latest_round()


def test_nothing_is_signed_before_the_round_is_closed(world):
    commit = world.round.schedule.commit
    act(world, 0, seen=commit - 1)
    assert world.member.store.partial(0) is None


def test_the_one_whose_turn_it_is_publishes_what_all_signed(world):
    commit = world.round.schedule.commit
    for rank in (1, 2):
        assert act(world, rank, head=commit).seed is None, "they wait for their turn"
    assert act(world, 0, head=commit).seed is not None
    seed = world.stage.contracts.beacon.seed_of(world.round_id)
    assert world.members[0].view.latest_round().seed == seed


def test_when_a_peer_is_silent_each_publishes_its_own_before_the_deadline(world):
    deadline = world.round.schedule.beacon
    for rank in (0, 1):
        assert act(world, rank, head=deadline - 17).seed is None
        assert world.members[rank].view.published_partials(world.round_id) == {
            world.members[r].address for r in range(rank)
        }
        act(world, rank, head=deadline - 16)
        act(world, rank, head=deadline - 16)
    published = world.members[1].view.published_partials(world.round_id)
    assert published == {world.members[0].address, world.members[1].address}
    assert act(world, 2, head=deadline - 16).seed is not None, "the third settles it"


def test_after_the_deadline_nothing_is_sent(world):
    deadline = world.round.schedule.beacon
    act(world, 0, head=deadline)
    assert world.stage.contracts.jobs.round(world.round_id).attested == 0
    assert world.members[0].view.published_partials(world.round_id) == set()


def test_a_wrong_signature_of_a_peer_is_not_published(world):
    commit = world.round.schedule.commit
    for rank in (1, 2):
        act(world, rank, head=commit)
    store = world.members[1].store
    message, _ = store.partial(0)
    wrong = bls.SecretKey(bytes(31) + b"\5").sign(message)
    store.keep_partial(0, message, wrong.eip2537())
    assert act(world, 0, head=commit).seed is None
    store.keep_partial(0, message, b"\xff" * 128)
    assert act(world, 0, head=commit).seed is None


def test_a_peer_without_an_endpoint_costs_nobody_anything(stage, tmp_path):
    """Its signature is missing; ours goes on chain all the same."""
    with World(stage, tmp_path, clients=1, ranks=(0,)) as world:
        world.open()
        stage.mine_past(world.round.schedule.commit)
        act(world, 0)
        deadline = world.round.schedule.beacon
        act(world, 0, head=deadline - 1)
        assert world.member.view.published_partials(world.round_id) == {world.member.address}


def test_what_a_reorganisation_changes_is_signed_anew(world):
    act(world, 0, head=world.round.schedule.commit)
    before = world.member.store.partial(0)
    assert world.member.store.partial(0) == before
    world.member.store.keep_partial(0, b"another message", before[1])
    act(world, 0, head=world.round.schedule.commit)
    assert world.member.store.partial(0) == before
