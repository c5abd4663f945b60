"""Peers may answer slowly, wrongly, at great length or not at all, and do no more harm."""

import json
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from played import QuietNode

from opfl_chain.chain.keys import sign_statement
from opfl_chain.protocol.aggregate import aggregate_hash
from opfl_chain.protocol.statements import RoundResult
from opfl_chain.roles import peers as peers_module
from opfl_chain.roles.evidence import two_results
from opfl_chain.roles.patience import Patience
from opfl_chain.roles.peers import NoEndpoint, hex_field
from opfl_chain.roles.settings import ModelMissing
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Response, Route
from opfl_chain.transport.server import HttpServer


@pytest.fixture(scope="module")
def world(player, tmp_path_factory):
    """A decided round after a seat changed, and a daemon that follows it."""
    job = player.create_real_job()
    player.join(job, [*player.members, player.standbys[0]])
    player.enrol(job, player.clients[:3])
    player.change_seat(job, 2, player.standbys[0])
    round_id = player.open_round(job)
    roll = player.roll(round_id, [0, 1])
    player.commit_roll(round_id, roll)
    player.publish_beacon(round_id, roll)
    player.attest(round_id, [0, 1], player.members[:2])
    seats = [*player.members[:2], player.standbys[0]]
    with QuietNode(player.settings(player.operator, tmp_path_factory.mktemp("node"), job)) as node:
        node.catch_up()
        yield SimpleNamespace(
            player=player, job=job, round_id=round_id, node=node, seats=seats, peers=node.peers
        )


@pytest.fixture
def replaced(world):
    """Announce the responses of a seat for the duration of a test."""
    opened = []
    world.peers.patience = Patience()

    def replace(seat, handler, pattern="/rounds/{round}/result"):
        server = HttpServer("127.0.0.1:0", [Route("GET", pattern, handler)])
        server.start()
        opened.append(server)
        announce(world, world.seats[seat], server.url)

    yield replace
    for server in opened:
        server.close(seconds=0.1)
    for actor in world.seats:
        if actor.address in world.node.view.endpoints():
            announce(world, actor, "http://127.0.0.1:1")


def announce(world, actor, url):
    world.player.announce(world.job, actor, url)
    world.node.catch_up()


def test_a_member_without_an_endpoint_is_a_peer_that_does_not_answer(world):
    with pytest.raises(NoEndpoint, match="no endpoint yet"):
        world.peers.ask_member_json(world.player.members[2].address, "/health")
    assert issubclass(NoEndpoint, TransportError)


def test_dripping_peer_is_given_up_in_time(world, replaced, monkeypatch):
    gone = threading.Event()

    def drip(request):
        gone.wait(120)
        return Response.json({})

    assert peers_module._limit_of(peers_module._SMALL) < 5.1
    monkeypatch.setattr(peers_module, "_limit_of", lambda size: 0.5)
    replaced(1, drip)
    started = time.monotonic()
    with pytest.raises(TransportError, match="timed out after"):
        path = f"/rounds/{world.round_id}/result"
        world.peers.ask_member_json(world.seats[1].address, path)
    assert time.monotonic() - started < 60
    gone.set()


@pytest.mark.parametrize(
    "answer", [b"x" * (1 << 17), b"[]", b"\xff", b"", b"[" * 60_000, b"7"], ids=len
)
def test_response_too_large_or_not_an_object_is_refused(world, replaced, answer):
    replaced(1, lambda _: Response.binary(answer))
    path = f"/rounds/{world.round_id}/result"
    with pytest.raises(TransportError):
        world.peers.ask_member_json(world.seats[1].address, path)


@pytest.mark.parametrize("value", [None, 7, "", "0x", "0x11", "zz" * 32, "0x" + "11" * 33, ["0x"]])
def test_a_field_has_its_size_or_is_no_field(value):
    with pytest.raises(TransportError, match="must be 32 bytes in hex"):
        hex_field({"hash": value}, "hash", 32)


def test_an_announced_url_that_is_none_is_a_peer_that_does_not_answer(world):
    for url in ("", "javascript:alert(1)", "http://10.0.0.1:1", "http://u:p@127.0.0.1:1", "\x00"):
        announce(world, world.seats[1], url)
        with pytest.raises(TransportError):
            world.peers.ask_member(world.seats[1].address, "/health")


def signed_result(world, seat, model=b"\2" * 32, signer=None, **changes):
    round_ = world.node.view.latest_round()
    facts = {
        "job": world.job,
        "round": round_.number,
        "opening": round_.opening,
        "verdict_hash": round_.verdict_hash,
        "aggregate_hash": b"\1" * 32,
        "model_hash": model,
    }
    statement = RoundResult(**(facts | changes))
    actor = signer or world.seats[seat]
    signature = sign_statement(actor.account, statement, world.player.domain)
    document = {
        "aggregate_hash": "0x" + "01" * 32,
        "model_hash": "0x" + model.hex(),
        "signature": "0x" + signature.hex(),
    }
    return lambda _: Response.json(document)


def results(world):
    return two_results(world.peers, world.node.view, world.node.view.latest_round())


def test_a_result_needs_two_members_that_say_the_same(world, replaced):
    assert results(world) is None
    replaced(0, signed_result(world, 0))
    assert results(world) is None
    replaced(1, signed_result(world, 1, model=b"\3" * 32))
    assert results(world) is None
    replaced(2, signed_result(world, 2))
    assert results(world).model_hash == b"\2" * 32


def test_a_result_that_one_member_signs_twice_is_one(world, replaced):
    replaced(0, signed_result(world, 0))
    replaced(1, signed_result(world, 1, signer=world.seats[0]))
    assert results(world) is None


def test_a_result_of_a_member_without_a_seat_does_not_count(world, replaced):
    replaced(0, signed_result(world, 0))
    replaced(2, signed_result(world, 2, signer=world.player.members[2]))
    assert results(world) is None
    replaced(2, signed_result(world, 2))
    assert results(world) is not None, "that of who took its seat does"


@pytest.mark.parametrize("fact", ["opening", "verdict_hash"])
def test_a_result_for_another_opening_or_verdict_does_not_count(world, replaced, fact):
    """A member that has not seen a reorganisation signs what nobody can use."""
    replaced(0, signed_result(world, 0))
    replaced(1, signed_result(world, 1, **{fact: b"\5" * 32}))
    assert results(world) is None


def test_content_comes_from_any_peer_that_has_it(world, replaced):
    peers, size = world.peers, world.player.boundary.coordinates
    good = bytes(8 * size)
    wanted = aggregate_hash(np.zeros(size, "<i8"))
    pattern = "/aggregates/{hash}"
    replaced(0, lambda _: Response.binary(b"\1" * 8 * size), pattern)
    replaced(1, lambda _: Response.binary(good + b"\0"), pattern)
    with pytest.raises(ModelMissing, match="sent something else"):
        peers.fetch_aggregate(wanted)
    replaced(2, lambda _: Response.binary(good), pattern)
    assert not peers.fetch_aggregate(wanted).any()


def test_bodies_are_counted(world, replaced):
    replaced(1, lambda _: Response.binary(json.dumps({"a": 1}).encode()))
    before = world.peers.traffic.report()
    path = f"/rounds/{world.round_id}/result"
    world.peers.ask_member_json(world.seats[1].address, path)
    after = world.peers.traffic.report()
    assert after["bytes_received"] - before["bytes_received"] == len('{"a": 1}')
