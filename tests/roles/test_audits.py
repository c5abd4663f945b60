"""Judging without peers, and how wrong deliveries are detected."""

from dataclasses import replace

import numpy as np
import pytest
from roles_support import World

from opfl_chain.adversaries.clients import DELIVERIES, AttackingConduct, conduct_named
from opfl_chain.adversaries.members import MEMBERS
from opfl_chain.adversaries.servers import SERVERS
from opfl_chain.protocol.delivery import Claim, check_delivery, encode_delivery, fault_of
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.roles.client.conduct import LocalContribution
from opfl_chain.roles.job import Job
from opfl_chain.roles.settings import NodeError

NUMBER = 1


@pytest.fixture(scope="module")
def world(rehearsal, tmp_path_factory):
    with World(rehearsal, tmp_path_factory.mktemp("world"), clients=6) as world:
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


def test_clients_without_a_delivery_are_known(world):
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
    """A contributor with made-up numbers."""

    def __init__(self, maker):
        self._maker = maker
        self.dataset = maker.tree

    def committed_input(self, t):
        return self._maker.committed_input(t)

    def committed_gradient(self, t, gradient):
        assert not gradient.any()
        return self._maker.committed(t + 1)

    def deliveries(self, t, contribution, *, audited):
        return self._maker.deliveries(t, audited=audited)


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
def test_wrong_delivery_is_charged_to_its_client(world, name, audited, reason):
    maker, member = world.makers[0], world.member
    contribution = LocalContribution(np.ones(3, np.float32), None, b"")
    given = conduct_named(name).deliveries(
        Contributed(maker), NUMBER, contribution, audited=audited
    )
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
    assert isinstance(conduct_named("amplify:10"), AttackingConduct)
    assert {type(conduct_named(name)) for name in DELIVERIES.names()} == {
        DELIVERIES[name] for name in DELIVERIES.names()
    }


def test_a_cheat_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(NodeError, match="Known cheats: wrong-model, wrong-model-hash"):
        SERVERS["nothing"]
    with pytest.raises(NodeError, match="Known cheats: withhold-beacon"):
        MEMBERS["nothing"]


def test_the_job_is_the_same_for_whoever_reads_it(world, rehearsal, chain):
    assert Job.find(chain.rpc, rehearsal.deployment, world.job_id).terms == world.member.job.terms
