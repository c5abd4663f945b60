"""The message that a member signs with its BLS key: from events, whatever a node says."""

import pytest
from eth_abi import encode
from roles_support import World

CHOSEN = b"a message that suits the node"


class LyingRpc:
    """A node that answers every call of a contract with a message of its choice."""

    def call(self, to, data, *, block=None):
        del to, data, block
        return encode(["bytes"], [CHOSEN])


@pytest.fixture(params=range(4), ids=lambda before: f"{before} direct before the batch")
def world(request, rehearsal, tmp_path):
    """A closed round with three direct commitments and a batch."""
    with World(rehearsal, tmp_path, clients=3, ranks=(0,)) as world:
        world.open(direct=world.makers[: request.param])
        jobs = rehearsal.contracts.jobs
        rehearsal.send(rehearsal.relayer, jobs.commit_batch(world.round_id, b"\x22" * 32, 7))
        rehearsal.commit_makers(world.round_id, world.makers[request.param :])
        rehearsal.mine_past(world.round.schedule.commit)
        world.catch_up()
        yield world


def signed(world):
    member = world.member
    member.beacon.act(member.view.latest_round(), member.catch_up())
    return member.store.partial(world.round.number)[0]


def test_it_is_the_message_of_the_contract(world, rehearsal):
    assert signed(world) == rehearsal.contracts.beacon.message(world.round_id)


def test_a_node_cannot_choose_it(world, rehearsal, monkeypatch):
    beacon = world.member.job.contracts.beacon
    with monkeypatch.context() as lying:
        lying.setattr(beacon, "_rpc", LyingRpc())
        assert beacon.message(world.round_id) == CHOSEN, "who asks the node signs this"
        found = signed(world)
    assert found == rehearsal.contracts.beacon.message(world.round_id) != CHOSEN
