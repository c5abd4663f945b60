"""What a member finds alone, and how clients that deliver wrongly are found out."""

from dataclasses import replace

import pytest
from node_stage import World

from opfl_chain.nodes.errors import NodeError
from opfl_chain.nodes.job import Job
from opfl_chain.nodes.misconduct import member_of, server_of
from opfl_chain.nodes.misdelivery import MISDELIVERIES, Misdelivery
from opfl_chain.nodes.settings import ServerSettings
from opfl_chain.protocol.delivery import Claim, check_delivery, fault_of
from opfl_chain.protocol.delivery_message import encode_delivery
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.verdict import FaultReason

NUMBER = 1


@pytest.fixture(scope="module")
def world(stage, tmp_path_factory):
    with World(stage, tmp_path_factory.mktemp("world"), clients=6) as world:
        world.open()
        world.settle()
        yield world


@pytest.fixture(scope="module")
def delivered(world):
    """To members 0 and 2: nothing from client 0, another opening from client 1, and all others."""
    for rank in (0, 2):
        member, wrong = world.members[rank], world.makers[1]
        for maker in world.makers[2:]:
            world.deliver(maker, member=member)
        parts = wrong.deliveries(world.round.number, audited=world.audited(wrong))
        shares = wrong.committed(NUMBER).packages[rank]
        body = encode_delivery(replace(parts[rank], gradient=shares))
        world.deliver(wrong, body, member=member)
    return world


def test_who_has_delivered_nothing_is_known(world):
    member = world.members[1]
    everybody = {maker.actor.address for maker in world.makers}
    assert member.judging.missing(world.round) == everybody
    world.deliver(world.makers[0], member=member)
    assert member.judging.missing(world.round) == everybody - {world.makers[0].actor.address}


def test_alone_a_member_charges_nobody_who_would_have_to_be_replayed(delivered):
    verdict = delivered.member.judging.alone(delivered.round)
    others = list(enumerate(delivered.makers))[2:]
    passed = {ClientIndex(i) for i, maker in others if not delivered.audited(maker)}
    assert 0 < len(passed) < len(others), "some are audited, and some are not"
    assert set(verdict.passed) == passed
    assert {fault.client: fault.reason for fault in verdict.faults} == {
        ClientIndex(0): FaultReason.NOT_DELIVERED,
        ClientIndex(1): FaultReason.COMMITMENT_MISMATCH,
    }


def test_members_with_the_same_deliveries_find_the_same_alone(delivered):
    first, third = (delivered.members[rank].judging.alone(delivered.round) for rank in (0, 2))
    assert first.hash == third.hash


class Contributed:
    """What a contributor has, made of made-up numbers."""

    def __init__(self, maker):
        self._maker = maker
        self.dataset = maker.tree
        self.zero_gradient = 0 * maker.gradient(0)

    def committed_input(self, t):
        return self._maker.committed_input(t)

    def committed_gradient(self, t, words):
        return self._maker.committed(t + 1)


@pytest.mark.parametrize(
    ("name", "audited", "reason"),
    [
        ("withhold-shares", False, FaultReason.NOT_DELIVERED),
        ("withhold-shares", True, FaultReason.NOT_DELIVERED),
        ("wrong-opening", False, FaultReason.COMMITMENT_MISMATCH),
        ("wrong-opening", True, FaultReason.COMMITMENT_MISMATCH),
        ("other-input", True, FaultReason.INPUT_NOT_COMMITTED),
        ("other-input", False, None),
    ],
)
def test_whoever_delivers_wrongly_is_charged_with_it(world, name, audited, reason):
    maker, member = world.makers[0], world.member
    honest = maker.deliveries(NUMBER, audited=audited)
    given = Misdelivery.named(name).deliveries(honest, NUMBER, Contributed(maker), audited=audited)
    delivery = given[member.rank] if given else None
    commitment = maker.committed(NUMBER).commitment
    claim = Claim(ClientIndex(0), NUMBER, commitment, maker.tree.root, audited)
    found = None
    try:
        check_delivery(member.judging.expected, claim, delivery)
    except ProtocolError as error:
        found = fault_of(error)
    assert found is reason


def test_names_that_are_no_misdelivery_are_left_to_the_attacks():
    assert Misdelivery.named("amplify:10") is None and Misdelivery.named(None) is None
    assert {Misdelivery.named(name).name for name in MISDELIVERIES} == set(MISDELIVERIES)


def test_a_cheat_that_there_is_not_is_refused_with_those_that_there_are(world, stage, tmp_path):
    settings = stage.settings(stage.operator, tmp_path, world.job_id)
    server = ServerSettings.model_validate({**settings.model_dump(), "cheat": "nothing"})
    with pytest.raises(NodeError, match="known are wrong-model, wrong-model-hash"):
        server_of(server)

    class Named:
        cheat = "nothing"

    with pytest.raises(NodeError, match="known are withhold-beacon"):
        member_of(Named)


def test_the_job_is_the_same_for_whoever_reads_it(world, stage, chain):
    assert Job.find(chain.rpc, stage.deployment, world.job_id).terms == world.member.job.terms
