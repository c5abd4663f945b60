"""Peers may be slow, huge, wrong or away: they can refuse, and no more."""

import json
import threading
import time

import numpy as np
import pytest
from node_stage import World

from opfl_chain.nodes import peers as peers_module
from opfl_chain.nodes.errors import ModelMissing
from opfl_chain.nodes.evidence import two_acquittals, two_results
from opfl_chain.nodes.peers import NoEndpoint, hex_field
from opfl_chain.protocol.aggregate import aggregate_hash
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.statements import Acquittal, RoundResult
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.messages import Response
from opfl_chain.transport.routes import Route
from opfl_chain.transport.server import HttpServer


@pytest.fixture(scope="module")
def world(stage, tmp_path_factory):
    """A decided round."""
    with World(stage, tmp_path_factory.mktemp("world"), clients=2) as world:
        world.open()
        world.settle()
        stage.attest(world.round_id, Verdict.of({ClientIndex(0), ClientIndex(1)}, {}), (0, 1))
        world.catch_up()
        yield world


@pytest.fixture
def replaced(world):
    """Lets something else answer in a member's place, for as long as a test takes."""
    opened, before = [], dict(world.member.view.endpoints())

    def replace(rank, handler, pattern="/rounds/{round}/result"):
        server = HttpServer("127.0.0.1:0", [Route("GET", pattern, handler)])
        server.start()
        opened.append(server)
        announce(world, rank, server.url)

    yield replace
    for server in opened:
        server.close(seconds=0.1)
    for rank, member in world.members.items():
        announce(world, rank, before[member.address])


def announce(world, rank, url):
    call = world.stage.contracts.jobs.announce_endpoint(world.job_id, url)
    world.stage.send(world.stage.members[rank], call)
    world.catch_up()


def test_a_member_without_an_endpoint_is_a_peer_that_does_not_answer(stage, tmp_path):
    with World(stage, tmp_path, clients=1, ranks=(0,)) as world:
        world.catch_up()
        other = stage.members[1].address
        with pytest.raises(NoEndpoint, match="no endpoint yet"):
            world.member.peers.ask_member_json(other, "/health")
        assert issubclass(NoEndpoint, TransportError)


def test_one_that_drips_its_answer_is_given_up_in_time(world, replaced, monkeypatch):
    gone = threading.Event()

    def drip(request):
        gone.wait(10)
        return Response.json({})

    assert peers_module._QUICK_SECONDS <= 5
    monkeypatch.setattr(world.member.peers._quick, "_seconds", 0.5)
    replaced(1, drip)
    started = time.monotonic()
    with pytest.raises(TransportError, match="takes longer than"):
        path = f"/rounds/{world.round_id}/result"
        world.member.peers.ask_member_json(world.stage.members[1].address, path)
    assert time.monotonic() - started < 5
    gone.set()


@pytest.mark.parametrize(
    "answer", [b"x" * (1 << 17), b"[]", b"\xff", b"", b"[" * 60_000, b"7"], ids=len
)
def test_what_is_too_large_or_no_object_is_no_answer(world, replaced, answer):
    replaced(1, lambda _: Response.binary(answer))
    path = f"/rounds/{world.round_id}/result"
    with pytest.raises(TransportError):
        world.member.peers.ask_member_json(world.stage.members[1].address, path)


@pytest.mark.parametrize("value", [None, 7, "", "0x", "0x11", "zz" * 32, "0x" + "11" * 33, ["0x"]])
def test_a_field_has_its_size_or_is_no_field(value):
    with pytest.raises(TransportError, match="must be 32 bytes in hex"):
        hex_field({"hash": value}, "hash", 32)


def test_an_announced_url_that_is_none_is_a_peer_that_does_not_answer(world):
    before = world.member.view.endpoints()[world.stage.members[1].address]
    for url in ("", "javascript:alert(1)", "http://10.0.0.1:1", "http://u:p@127.0.0.1:1", "\x00"):
        announce(world, 1, url)
        with pytest.raises(TransportError):
            world.member.peers.ask_member(world.stage.members[1].address, "/health")
    announce(world, 1, before)


def signed_result(world, rank, aggregate=b"\1" * 32, model=b"\2" * 32, signer=None):
    statement = RoundResult(
        world.job_id, world.round.number, world.round.verdict_hash, aggregate, model
    )
    member = world.stage.members[rank if signer is None else signer]
    signature = member.sign(statement, world.stage.domain)
    document = {
        "aggregate_hash": "0x" + aggregate.hex(),
        "model_hash": "0x" + model.hex(),
        "signature": "0x" + signature.hex(),
    }
    return lambda _: Response.json(document)


def results(world):
    return two_results(world.member.peers, world.member.job, world.round)


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
    replaced(1, signed_result(world, 1, signer=0))
    assert results(world) is None


def test_acquittals_are_of_two_members_for_this_client_and_round(world, replaced):
    client = world.makers[0].actor.address
    other = world.makers[1].actor.address

    def acquittal(rank, whom):
        statement = Acquittal(world.job_id, world.round.number, whom)
        signature = world.stage.members[rank].sign(statement, world.stage.domain)
        return lambda _: Response.json({"signature": "0x" + signature.hex()})

    def found():
        return two_acquittals(world.member.peers, world.member.job, world.round, client)

    pattern = "/rounds/{round}/acquittals/{client}"
    replaced(0, acquittal(0, client), pattern)
    replaced(1, acquittal(1, other), pattern)
    assert found() is None
    replaced(2, acquittal(2, client), pattern)
    assert found() is not None


def test_what_is_known_by_its_hash_comes_from_whoever_has_it(world, replaced):
    member, size = world.member, world.member.judging.expected.gradient_words
    good = bytes(8 * size)
    wanted = aggregate_hash(np.zeros(size, "<i8"))
    pattern = "/aggregates/{hash}"
    replaced(0, lambda _: Response.binary(b"\1" * 8 * size), pattern)
    replaced(1, lambda _: Response.binary(good + b"\0"), pattern)
    with pytest.raises(ModelMissing, match="sent something else"):
        member.peers.fetch_aggregate(wanted)
    replaced(2, lambda _: Response.binary(good), pattern)
    assert not member.peers.fetch_aggregate(wanted).any()


def test_bodies_are_counted(world, replaced):
    replaced(1, lambda _: Response.binary(json.dumps({"a": 1}).encode()))
    before = world.member.peers.traffic()
    path = f"/rounds/{world.round_id}/result"
    world.member.peers.ask_member_json(world.stage.members[1].address, path)
    after = world.member.peers.traffic()
    assert after["bytes_received"] - before["bytes_received"] == len('{"a": 1}')
