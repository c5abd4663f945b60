"""Peers may answer slowly, wrongly, at great length or not at all, and do no more harm."""

import json
import threading
import time

import numpy as np
import pytest
from roles_support import World

from opfl_chain.protocol.aggregate import aggregate_hash
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.statements import Acquittal, RoundResult
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles import peers as peers_module
from opfl_chain.roles.evidence import two_acquittals, two_results
from opfl_chain.roles.peers import NoEndpoint, hex_field
from opfl_chain.roles.settings import ModelMissing
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Response, Route
from opfl_chain.transport.server import HttpServer


@pytest.fixture(scope="module")
def world(rehearsal, tmp_path_factory):
    """A decided round."""
    with World(rehearsal, tmp_path_factory.mktemp("world"), clients=2) as world:
        world.open()
        world.settle()
        rehearsal.attest(world.round_id, Verdict.of({ClientIndex(0), ClientIndex(1)}, {}), (0, 1))
        world.catch_up()
        yield world


@pytest.fixture
def replaced(world):
    """Replace the responses of a member for the duration of a test."""
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
    call = world.rehearsal.contracts.jobs.announce_endpoint(world.job_id, url)
    world.rehearsal.send(world.rehearsal.members[rank], call)
    world.catch_up()


def test_a_member_without_an_endpoint_is_a_peer_that_does_not_answer(rehearsal, tmp_path):
    with World(rehearsal, tmp_path, clients=1, ranks=(0,)) as world:
        world.catch_up()
        other = rehearsal.members[1].address
        with pytest.raises(NoEndpoint, match="no endpoint yet"):
            world.member.peers.ask_member_json(other, "/health")
        assert issubclass(NoEndpoint, TransportError)


def test_dripping_peer_is_given_up_in_time(world, replaced, monkeypatch):
    gone = threading.Event()

    def drip(request):
        gone.wait(120)
        return Response.json({})

    assert peers_module._QUICK_SECONDS <= 5
    monkeypatch.setattr(world.member.peers._quick, "_seconds", 0.5)
    replaced(1, drip)
    started = time.monotonic()
    with pytest.raises(TransportError, match="timed out after"):
        path = f"/rounds/{world.round_id}/result"
        world.member.peers.ask_member_json(world.rehearsal.members[1].address, path)
    assert time.monotonic() - started < 60
    gone.set()


@pytest.mark.parametrize(
    "answer", [b"x" * (1 << 17), b"[]", b"\xff", b"", b"[" * 60_000, b"7"], ids=len
)
def test_response_too_large_or_not_an_object_is_refused(world, replaced, answer):
    replaced(1, lambda _: Response.binary(answer))
    path = f"/rounds/{world.round_id}/result"
    with pytest.raises(TransportError):
        world.member.peers.ask_member_json(world.rehearsal.members[1].address, path)


@pytest.mark.parametrize("value", [None, 7, "", "0x", "0x11", "zz" * 32, "0x" + "11" * 33, ["0x"]])
def test_a_field_has_its_size_or_is_no_field(value):
    with pytest.raises(TransportError, match="must be 32 bytes in hex"):
        hex_field({"hash": value}, "hash", 32)


def test_an_announced_url_that_is_none_is_a_peer_that_does_not_answer(world):
    before = world.member.view.endpoints()[world.rehearsal.members[1].address]
    for url in ("", "javascript:alert(1)", "http://10.0.0.1:1", "http://u:p@127.0.0.1:1", "\x00"):
        announce(world, 1, url)
        with pytest.raises(TransportError):
            world.member.peers.ask_member(world.rehearsal.members[1].address, "/health")
    announce(world, 1, before)


def signed_result(world, rank, aggregate=b"\1" * 32, model=b"\2" * 32, signer=None):
    statement = RoundResult(
        world.job_id, world.round.number, world.round.verdict_hash, aggregate, model
    )
    member = world.rehearsal.members[rank if signer is None else signer]
    signature = member.sign(statement, world.rehearsal.domain)
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
        signature = world.rehearsal.members[rank].sign(statement, world.rehearsal.domain)
        return lambda _: Response.json({"signature": "0x" + signature.hex()})

    def found():
        return two_acquittals(world.member.peers, world.member.job, world.round, client)

    pattern = "/rounds/{round}/acquittals/{client}"
    replaced(0, acquittal(0, client), pattern)
    replaced(1, acquittal(1, other), pattern)
    assert found() is None
    replaced(2, acquittal(2, client), pattern)
    assert found() is not None


def test_content_comes_from_any_peer_that_has_it(world, replaced):
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
    before = world.member.peers.traffic.report()
    path = f"/rounds/{world.round_id}/result"
    world.member.peers.ask_member_json(world.rehearsal.members[1].address, path)
    after = world.member.peers.traffic.report()
    assert after["bytes_received"] - before["bytes_received"] == len('{"a": 1}')
