"""A dispute of real members is settled by anyone, from what a holder hands over."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from seated import ANSWER, TickingMember, World
from typer.testing import CliRunner

from opfl_chain.adversaries.members import AnswersFalsely
from opfl_chain.cli import app
from opfl_chain.protocol.disputed import DisputedComponent
from opfl_chain.protocol.errors import MessageError
from opfl_chain.protocol.shares import held_indices, holders_of
from opfl_chain.roles.member.disputes import HandOverRefused, hand_over
from opfl_chain.roles.member.proved_audits import ANSWERS_FILE

BAD, HONEST, THIRD = range(3)
DISPUTED = next(k for k in held_indices(BAD) if k in held_indices(HONEST))
"""The component that the liar and an honest member hold."""


class Lying(TickingMember):
    PROVED_AUDITS = AnswersFalsely.PROVED_AUDITS


@pytest.fixture(scope="module")
def disputed(proved, tmp_path_factory):
    """A job of which a round was audited, and a member lied."""
    with World(proved, tmp_path_factory.mktemp("dispute"), cheats={BAD: Lying}) as world:
        world.open()
        for client in world.clients:
            assert client.deliver() == [200, 200, 200]
        world.until(lambda: world.round.seed is not None)
        for client in world.clients:
            client.deliver(ANSWER)
        view = world.member(HONEST).view
        world.until(lambda: view.round(0).verdict_hash is not None)
        yield world


def settings(world, number):
    return world.member(number).settings


def index_of(world, client=0):
    return world.member(HONEST).view.client(world.clients[client].address).index


def blamed(world, tmp_path, handed, evidence=None):
    chain, file = settings(world, HONEST).chain, tmp_path / "component.json"
    file.write_bytes(handed.encode())
    given = {
        "--rpc-url": chain.rpc_url,
        "--job": world.job,
        "--deployment": chain.deployment,
        "--answers": settings(world, HONEST).state / ANSWERS_FILE,
        "--component": file,
        "--json": tmp_path / "evidence.json",
    }
    words = [str(word) for pair in given.items() for word in pair]
    return CliRunner().invoke(app, ["blame", *words])


@pytest.mark.parametrize("giver", holders_of(DISPUTED))
def test_liar_is_named_whichever_holder_hands_the_component_over(disputed, tmp_path, giver):
    handed = hand_over(settings(disputed, giver), 0, index_of(disputed), DISPUTED)
    result = blamed(disputed, tmp_path, handed)
    assert result.exit_code == 0, result.output
    evidence = json.loads((tmp_path / "evidence.json").read_text())
    liar, honest = (disputed.member(seat).address for seat in (BAD, HONEST))
    assert evidence["named"] == [liar]
    lies = {each["member"]: each["lies"] for each in evidence["holders"]}
    assert lies == {liar: True, honest: False}
    right = next(each for each in evidence["holders"] if each["member"] == honest)
    assert evidence["recomputed"] == right["answer"]
    assert f"({liar}) lies" in result.output.replace("\n", " ")


def test_component_that_is_not_disputed_is_not_handed_over(disputed):
    agreed = next(k for k in range(3) if k not in held_indices(BAD))
    with pytest.raises(HandOverRefused, match="nothing is disputed"):
        hand_over(settings(disputed, HONEST), 0, index_of(disputed), agreed)


def test_member_that_does_not_hold_a_component_has_nothing_to_hand_over(disputed):
    with pytest.raises(HandOverRefused, match="holds components"):
        hand_over(settings(disputed, THIRD), 0, index_of(disputed), DISPUTED)


def flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: replace(d, gradient_key=flipped(d.gradient_key)), "leaf hash"),
        (lambda d: replace(d, answer_key=flipped(d.answer_key)), "leaf hash"),
        (lambda d: replace(d, weights=flipped(d.weights)), "the weights have the hash"),
        (lambda d: replace(d, answer=flipped(d.answer)), "not the one that the session is about"),
        (lambda d: replace(d, opening=flipped(d.opening)), "another opening"),
        (lambda d: replace(d, contribution=d.answer), "bundle"),
        (
            lambda d: replace(d, answers={d.client: d.answers[d.client]}),
            "reports on other answers",
        ),
    ],
)
def test_evidence_that_is_not_bound_names_nobody(disputed, tmp_path, change, reason):
    handed = hand_over(settings(disputed, HONEST), 0, index_of(disputed), DISPUTED)
    result = blamed(disputed, tmp_path, change(handed))
    assert result.exit_code == 1
    assert reason in str(result.exception)
    assert not (tmp_path / "evidence.json").exists()


def test_file_that_is_no_component_is_refused(disputed):
    handed = hand_over(settings(disputed, HONEST), 0, index_of(disputed), DISPUTED)
    assert DisputedComponent.decode(handed.encode()) == handed
    for wrong in (b"", b"[]", b"{}", handed.encode()[:-1], handed.encode().replace(b"0x", b"0y")):
        with pytest.raises(MessageError):
            DisputedComponent.decode(wrong)
