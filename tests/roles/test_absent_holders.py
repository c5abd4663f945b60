"""A bad member alone answers for a component: its other holder, which is honest, is away.

The client tells the bad member the answers to all components, so that it can forge the one word
that makes any gradient pass, or it states a sum of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
import unconfirmed
from seated import ANSWER, TickingMember, World

from opfl_chain.adversaries.members import SumsFalsely
from opfl_chain.chain.bindings.types import ChargeStatus
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.aggregate import aggregate_hash, open_sum
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.proof.answers import Query, accepts
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.shares import components_of
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.client.conduct import Conduct
from opfl_chain.roles.member import proved_audits, sums
from opfl_chain.roles.member.proved_audits import ProvedAudits

BAD, HONEST, AWAY, STANDBY = range(4)
ALONE = BAD
"""The component that the bad member and the one that is away hold."""


class Reversed(Conduct):
    """Submits a multiple of the gradient, of the wrong sign, and knows that an audit rejects it."""

    def gradient(self, step, memory):
        return -5 * step.gradient, memory

    def takes_part(self, usage):
        return not usage.holds


class ForgingAudits(ProvedAudits):
    """Makes the words on cheats' steps accept."""

    told: ClassVar[dict[ClientIndex, dict[int, Answer]]] = {}
    """The answers of honest holders, by component, of the clients that told them."""

    def _words(self, round_, claim, delivery):
        right = super()._words(round_, claim, delivery)
        true = self.told.get(claim.client)
        return right if true is None else replace(right, own=forged(true))


class Forging(TickingMember):
    PROVED_AUDITS = ForgingAudits


class MiscountingSum(TickingMember):
    SUMS = SumsFalsely.SUMS


def forged(true):
    """The word with which the true ones on the other components accept."""
    others = [answer.words for index, answer in true.items() if index != ALONE]
    left, right, product, rest = (sum(words) for words in zip(*others, strict=True))
    return Answer(0, 0, (left * right - product) % MODULUS, -rest % MODULUS)


def tell(client, world):
    """Compute the answers of honest holders from what the client knows, and tell the bad member."""
    round_, own = world.round, client.own
    made = client.made[round_.opening]
    gradient = own.committed_gradient(round_.opening, made.gradient)
    given = own.committed_input(round_.number)
    name = client._name(round_.number, round_.opening, gradient.commitment, given.commitment)
    player, packages = world.player, own.proof(made)
    tolerance = player.boundary.tolerance
    statement = statement_of(player.policy, tolerance, player.layout.unflatten(player.weights))
    query = Query.of(statement, name, packages[0].leaves)
    held = {part.index: part for package in packages for part in package.held}
    words = zip(components_of(gradient.packages), components_of(given.packages), strict=True)
    true = {index: query.answer(held[index], *both) for index, both in enumerate(words)}
    assert not accepts([true[index] for index in range(3)])
    index = world.member(HONEST).view.client(client.address).index
    ForgingAudits.told[index] = true
    return index


def rolled(world, *clients):
    world.open()
    for client in clients:
        assert client.deliver() == [200, 200, 200]
    world.until(lambda: world.round.seed is not None)


@pytest.mark.parametrize("is_defended", [True, False])
def test_forged_word_passes_no_gradient_while_its_other_holder_is_away(
    proved,
    tmp_path,
    monkeypatch,
    is_defended,
):
    if not is_defended:
        monkeypatch.setattr(proved_audits, "conclude", unconfirmed.conclude)
    monkeypatch.setattr(ForgingAudits, "told", {})
    with World(proved, tmp_path, cheats={BAD: Forging}) as world:
        cheat = world.clients[0]
        cheat.own._conduct = Reversed()
        rolled(world, *world.clients)
        index = tell(cheat, world)
        for client in world.clients:
            client.deliver(ANSWER)
        view, there = world.member(HONEST).view, (BAD, HONEST, STANDBY)
        world.until(lambda: view.round(0).over is not None, *there, blocks=2)
        passed = Verdict.decode(view.decided_passes(view.round(0))).passed
        honest = {view.client(each.address).index for each in world.clients[1:]}
        assert honest <= passed, "the standby confirms what honest clients wait for"
        assert (index in passed) is not is_defended
        if is_defended:
            world.until(lambda: bool(view.charges()), *there)
            (charge,) = view.charges()
            assert charge.status is ChargeStatus.HELD
            assert charge.held == world.member(HONEST).job.terms.penalties.client


@pytest.mark.parametrize("is_defended", [True, False])
def test_false_part_of_a_sum_is_not_opened_while_its_other_holder_is_away(
    proved,
    tmp_path,
    monkeypatch,
    is_defended,
):
    if not is_defended:
        monkeypatch.setattr(sums, "agree", unconfirmed.agree)
    with World(proved, tmp_path, cheats={BAD: MiscountingSum}) as world:
        rolled(world, *world.clients)
        for client in world.clients:
            client.deliver(ANSWER)
        view = world.member(HONEST).view
        world.until(lambda: view.round(0).over is not None, BAD, HONEST, STANDBY, blocks=2)
        found = view.round(0)
        assert found.over == ("void" if is_defended else "finalised")
        if not is_defended:
            assert found.aggregate_hash != aggregate_hash(true_sum(world))
        assert not view.charges()


def true_sum(world):
    """The sum of all gradients, from the components of the two honest seats."""
    view = world.member(HONEST).view
    round_, passes = view.round(0), view.decided_passes(view.round(0))
    one, two = world.member(HONEST).sums._summed(round_, passes)
    _, zero = world.member(AWAY).sums._summed(round_, passes)
    return open_sum({0: zero, 1: one, 2: two})
