"""A seat hands the referee keys of components, and nobody else reads them.

An honest member is away, so that what the other holder of its components says has to be confirmed.
A bad member has the other two components of every contribution itself.
"""

import httpx
import numpy as np
import pytest
from seated import ANSWER, World

from opfl_chain.chain.rpc import tohex, unhex
from opfl_chain.protocol.echo import Slot, echo_of
from opfl_chain.protocol.referee import NOTHING, HandOver
from opfl_chain.protocol.shares import components_of
from opfl_chain.protocol.unsealing import open_gradient_component
from opfl_chain.roles.member.messages import Messages

BAD, HONEST, AWAY, STANDBY = range(4)
THIRD = 2
"""The component that the bad member has not."""


@pytest.mark.parametrize("is_defended", [True, False])
def test_nobody_reads_the_keys_that_a_seat_hands_the_referee(
    proved, tmp_path, monkeypatch, is_defended
):
    if not is_defended:
        monkeypatch.setattr(Messages, "_require_for_all", lambda *_: None)
    with World(proved, tmp_path, rounds=1) as world:
        world.open()
        for client in world.clients:
            assert client.deliver() == [200] * 3
        world.until(lambda: world.round.seed is not None)
        for client in world.clients:
            client.deliver(ANSWER)
        honest, slot = world.member(HONEST), Slot.REFEREE
        said = honest.messages.own
        world.until(lambda: said(world.round, slot) is not None, BAD, HONEST, STANDBY, blocks=2)
        handed = HandOver.decode(said(world.round, slot).body, len(world.clients))
        assert any(keys.gradient != NOTHING for keys in handed.keys.values())
        found = [answer for number in (BAD, HONEST, STANDBY) for answer in asked(world, number)]
        assert {answer.status_code for answer in found} <= ({404} if is_defended else {200, 404})
        shown = [is_shown(world, client, found) for client in world.clients]
        assert shown == [not is_defended] * len(world.clients)
        report = f"{honest.http.url}/rounds/{world.round.id}/messages/{echo_of(Slot.REPORT)}/0"
        assert httpx.get(report).status_code == 200, "other messages are for everyone"


def asked(world, number):
    """The answers of a member whom anybody asks for the hand-over of the honest seat."""
    member, round_ = world.member(number), world.round
    kept = world.member(HONEST).messages.own(round_, Slot.REFEREE)
    path = f"{member.http.url}/rounds/{round_.id}/messages/{int(Slot.REFEREE)}/{HONEST}"
    return [httpx.get(path), httpx.get(f"{path}/{tohex(kept.hash)}")]


def is_shown(world, client, answers):
    """Return whether the bad member has all of a client's gradient with what it was told."""
    round_, bad = world.round, world.member(BAD)
    entry = next(e for e in bad.store.roll(round_.opening) if e.address == client.address)
    expected = bad.judging.expected(BAD)
    own = bad.contributions.delivery(round_, client.address, expected).gradient.held
    for answer in answers:
        if answer.status_code != 200:
            continue
        handed = HandOver.decode(unhex(answer.json()["body"]), len(world.clients)).keys
        for place, keys in handed.items():
            if (place.client, place.component) == (entry.client, THIRD):
                bundle = bad.gradient_intake.required(round_, client.address, entry.content_hash)
                part = open_gradient_component(bundle, THIRD, keys.gradient, expected)
                words = sum(each.words(expected.gradient_words) for each in (*own, part))
                made = client.made[round_.opening].gradient
                packages = client.own.committed_gradient(round_.opening, made).packages
                return np.array_equal(words, sum(components_of(packages)))
    return False


def test_slots_without_a_meaning_take_no_place(proved, tmp_path):
    with World(proved, tmp_path, rounds=1) as world:
        world.open()
        bad, honest, round_ = world.member(BAD), world.member(HONEST), world.round
        for slot in (0, Slot.REFEREE, Slot.REFEREE + 1, Slot.SUM_REFEREE + 1, 17, 255):
            signature = bad.sign(bad.messages.statement(round_, slot, b"anything"))
            path = f"{honest.http.url}/rounds/{round_.id}/messages/{int(slot)}/{BAD}"
            headers = {"Opfl-Signature": tohex(signature)}
            assert httpx.post(path, content=b"anything", headers=headers).status_code == 404
        assert honest.store.slots(round_.opening) == []
