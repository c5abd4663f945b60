"""A member or a client without memory for a statement: it says so, and nobody waits for ever."""

from __future__ import annotations

import pytest
from proving_support import OPENING, ROUND, WEIGHTS, contributor
from seated import ANSWER, TickingMember, World

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.protocol.errors import memory_for
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.client.conduct import Conduct
from opfl_chain.roles.member.proved_audits import ProvedAudits

SCARCE, STANDBY = 0, 3


class ScarceAudits(ProvedAudits):
    """Has no memory for a statement as long as the test says so."""

    is_short = True

    def statement(self, round_):
        with memory_for("the statement of a step"):
            if self.is_short:
                raise MemoryError
            return super().statement(round_)


class ScarceMember(TickingMember):
    PROVED_AUDITS = ScarceAudits


@pytest.fixture
def world(proved, tmp_path):
    """A settled round in which everybody is audited and has answered."""
    with World(proved, tmp_path, cheats={SCARCE: ScarceMember}) as world:
        world.open()
        for client in world.clients:
            assert client.deliver() == [200, 200, 200]
        world.until(lambda: world.round.seed is not None)
        for client in world.clients:
            assert client.deliver(ANSWER) == [200, 200, 200]
        yield world


def everybody_passed(world):
    view = world.member(1).view
    passed = Verdict.decode(view.decided_passes(view.round(0))).passed
    return passed == {view.client(each.address).index for each in world.clients}


def test_member_without_memory_says_so_and_tries_again(world):
    scarce = world.member(SCARCE)
    world.until(lambda: scarce._audits.health["disputes"])
    (told,) = scarce._audits.health["disputes"]
    assert told["members"] == [scarce.address]
    assert "no memory for the statement" in told["reason"]
    scarce._audits.is_short = False
    view = world.member(1).view
    world.until(lambda: view.round(0).over is not None)
    assert view.round(0).over == "finalised" and everybody_passed(world)
    assert view.penalties() == view.charges() == []


def test_peers_of_a_member_that_stays_without_memory_go_on(world):
    view = world.member(1).view
    world.until(lambda: view.round(0).over is not None, blocks=2)
    assert view.round(0).over == "finalised" and everybody_passed(world)
    assert not view.charges()
    world.until(lambda: view.epoch == 1)
    faults = {(each.member, each.fault) for each in view.penalties()}
    assert faults == {(world.member(SCARCE).address, MemberFault.ABSENCE)}
    assert view.seats()[SCARCE] == world.member(STANDBY).address


class Scarce(Conduct):
    """A client without memory for its proof."""

    def prover(self, *given, **options):
        raise MemoryError


def test_client_without_memory_for_its_proof_sits_the_round_out():
    made = contributor(Scarce()).make(ROUND, OPENING, WEIGHTS, b"memory")
    assert made.refusal.startswith("the step cannot be proved: ")
    assert "no memory for the proof of our step" in made.refusal
    assert (made.proof, made.memory) == (None, b"memory")
