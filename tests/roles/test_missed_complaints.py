"""A contribution does not open for a member that was away when members complained of it.

It is on the roll then, and the member is back for the audit and the sum. Its client loses by that,
not the member.
"""

from seated import ANSWER, CONTRIBUTION, World, spoilt

from opfl_chain.chain.bindings.types import ChargeStatus
from opfl_chain.protocol.verdict import Outcome, Verdict

AWAY = 1


def rolled(world):
    """Play until the roll is seeded; one member misses the complaints. Return the cheat."""
    world.open()
    cheat, *others = world.clients
    for client in others:
        assert client.deliver() == [200] * 3
    assert cheat.deliver(bundle=spoilt(cheat.bundle(CONTRIBUTION), AWAY)) == [200] * 3
    world.until(lambda: world.round.roll is not None, 0, 2, blocks=2)
    world.until(lambda: world.round.seed is not None)
    return cheat


def settled(world):
    world.until(lambda: world.round.over is not None, blocks=2)
    for _ in range(4):
        world.tick()
        world.player._mine(2)
    world.catch_up()


def test_client_pays_for_an_audited_contribution_and_no_member_does(proved, tmp_path):
    with World(proved, tmp_path, rounds=1) as world:
        cheat = rolled(world)
        for client in world.clients:
            assert client.deliver(ANSWER) == [200] * 3
        view = world.member(0).view
        settled(world)
        assert not view.penalties()
        world.until(lambda: view.charges() and not view.undecided(), blocks=4)
        (charge,) = view.charges()
        assert (charge.client, charge.outcome) == (cheat.address, Outcome.UNANSWERED)
        assert charge.status is ChargeStatus.CHARGED
        assert not view.penalties()


def test_sum_is_opened_without_the_parts_of_a_member_that_has_none(proved, tmp_path):
    with World(proved, tmp_path, rounds=1, audit_rate=0) as world:
        cheat = rolled(world)
        view = world.member(0).view
        settled(world)
        assert world.round.over == "finalised"
        passed = Verdict.decode(view.decided_passes(world.round)).passed
        assert view.client(cheat.address).index in passed
        assert not view.penalties()
        assert world.member(AWAY).store.result(world.round.opening) is not None
