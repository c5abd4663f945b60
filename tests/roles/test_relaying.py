"""Commitments in batches: a relayer cannot commit for others, nor make members disagree."""

import json
from dataclasses import replace

import pytest
from roles_support import World

from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.statements import GradientCommitment
from opfl_chain.roles.claims import Batch, Entry
from opfl_chain.roles.client.client import Client
from opfl_chain.roles.node import Moment
from opfl_chain.roles.server.server import Server
from opfl_chain.roles.settings import ClientSettings, JobUnusable, ServerSettings
from opfl_chain.transport.errors import PeerRefused
from opfl_chain.transport.routes import Response, Route
from opfl_chain.transport.server import HttpServer


@pytest.fixture(scope="module")
def world(rehearsal, tmp_path_factory):
    """An open round; clients 0 and 1 have committed directly."""
    with World(rehearsal, tmp_path_factory.mktemp("world"), ranks=(0, 1)) as world:
        world.open(direct=world.makers[:2])
        yield world


@pytest.fixture(scope="module")
def server(world, rehearsal, tmp_path_factory):
    settings = rehearsal.settings(
        rehearsal.relayer, tmp_path_factory.mktemp("server"), world.job_id
    )
    with (
        Server(ServerSettings.model_validate(settings.model_dump())) as server,
        HttpServer("127.0.0.1:0", server.routes()) as http,
    ):
        server.http = http
        catch_up(server)
        yield server


def catch_up(node):
    step = node.cursor.catch_up()
    node._moment = Moment(step.position, step.target)
    return node._moment


def entry(world, maker, commitment=None, signer=None):
    number = world.round.number
    commitment = commitment or maker.committed(number).commitment
    statement = GradientCommitment(world.job_id, number, maker.actor.address, commitment)
    signature = (signer or maker).actor.sign(statement, world.rehearsal.domain)
    return Entry(maker.actor.address, commitment, signature)


def relay(world, server, maker, *, said=None, round_id=None, address=None):
    said = said or entry(world, maker)
    path = f"/rounds/{round_id or world.round_id}/commitments/{address or maker.actor.address}"
    headers = {"Opfl-Signature": tohex(said.signature)}
    answer = world.http.post(server.http.url, "", path, said.commitment, 1 << 16, headers=headers)
    return json.loads(answer)


def batch_of(world, *entries):
    return Batch(world.member.job, world.round.number, list(entries))


# --- the list


def test_a_list_is_read_as_it_was_written(world):
    batch = batch_of(world, *(entry(world, maker) for maker in world.makers))
    root = batch.tree.root
    assert Batch.decode(batch.job, batch.number, root, batch.encode()) == batch
    assert len(batch.encode()) <= Batch.most_bytes(len(world.makers))


def test_list_with_another_root_is_refused(world):
    batch = batch_of(world, *(entry(world, maker) for maker in world.makers))
    root, rows = batch.tree.root, json.loads(batch.encode())
    tampered = [
        rows[:-1],
        [*rows, rows[0]],
        [[rows[1][0], *rows[0][1:]], *rows[1:]],
        [[rows[0][0], rows[1][1], rows[0][2]], *rows[1:]],
        [],
        {},
        None,
        [[]],
        [["0x", "0x", "0x"]],
        [[1, 2, 3]],
        [["0x" + "11" * 20, "0x" + "11" * 31, "0x"]],
    ]
    for each in tampered:
        assert Batch.decode(batch.job, batch.number, root, json.dumps(each).encode()) is None
    for raw in (b"", b"\xff", b"[" * 100_000, b"NaN", batch.encode()[:-1]):
        assert Batch.decode(batch.job, batch.number, root, raw) is None
    assert Batch.decode(batch.job, batch.number + 1, root, batch.encode()) is None


def test_only_entries_that_their_clients_signed_count(world):
    alice, bob, carol = world.makers[:3]
    good = entry(world, alice)
    spoiled = replace(entry(world, bob), signature=b"\0" * 65)
    forged = entry(world, carol, signer=alice)
    batch = batch_of(world, spoiled, good, forged)
    assert batch.signed == {alice.actor.address: good}
    assert batch.proof(bob.actor.address) is None


def test_a_spoiled_entry_in_front_does_not_hide_what_a_client_signed(world):
    alice = world.makers[0]
    good = entry(world, alice)
    hidden = batch_of(world, Entry(good.client, b"\1" * 32, b"\0" * 65), good)
    proof = hidden.proof(alice.actor.address)
    assert (proof.commitment, proof.signature) == (good.commitment, good.signature)


def test_all_choose_the_same_of_two_commitments_of_one_client(world):
    alice = world.makers[0]
    low, high = (entry(world, alice, commitment=bytes([n]) * 32) for n in (1, 2))
    one, other = batch_of(world, low, high), batch_of(world, high, low)
    assert one.tree.root == other.tree.root
    assert one.signed == other.signed == {alice.actor.address: low}


def test_signatures_of_two_lists_make_a_whole_one(world):
    alice, bob = (entry(world, maker) for maker in world.makers[:2])
    spoil = b"\0" * 65
    one = batch_of(world, replace(alice, signature=spoil), bob)
    other = batch_of(world, alice, replace(bob, signature=spoil))
    assert one.merged(other).entries == other.merged(one).entries == [alice, bob]


# --- the server


def test_the_server_takes_what_a_client_signed_and_takes_it_again(world, server):
    maker = world.makers[2]
    assert relay(world, server, maker) == relay(world, server, maker) == {"taken": True}


def test_the_server_refuses_what_is_not_the_clients(world, server):
    alice, bob = world.makers[2:4]

    def status(**options):
        with pytest.raises(PeerRefused) as caught:
            relay(world, server, alice, **options)
        return caught.value.status

    assert status(said=entry(world, alice, signer=bob)) == 401
    assert status(said=replace(entry(world, alice), signature=b"")) == 401
    assert status(said=entry(world, alice, commitment=b"\5" * 32)) == 409
    assert status(said=replace(entry(world, alice), commitment=b"\5" * 31)) == 400
    assert status(said=replace(entry(world, alice), commitment=b"\5" * 33)) == 413
    assert status(address=world.rehearsal.operator.address) == 403
    assert status(address="0x12") == 400
    for other in (world.round_id + 1, str(world.round.number), "x", "9" * 40):
        assert status(round_id=other) == 410


def test_the_server_relays_no_more_when_the_time_is_over(world, server):
    moment = server._moment
    server._moment = replace(moment, head=world.round.schedule.commit)
    with pytest.raises(PeerRefused, match="any more"):
        relay(world, server, world.makers[3])
    server._moment = moment


@pytest.fixture(scope="module")
def batched(world, server):
    """Clients 1 to 4 are in the batch, client 1 also directly; and the round is settled."""
    catch_up(server)
    for maker in world.makers[1:5]:
        relay(world, server, maker)
    moment, round_ = catch_up(server), server.view.latest_round()
    server._relay(round_, moment)
    assert catch_up(server) and server.view.batch(round_.id) is None, "there is time for others"
    for _ in range(2):
        server._relay(round_, replace(moment, head=round_.schedule.commit - 5))
    catch_up(server)
    assert server.view.batch(round_.id)[1] == 4
    world.settle()
    return world


def fetch(world, member):
    """At once, however often it was tried."""
    root, _ = member.view.batch(world.round_id)
    member.claims._asking.succeeded(f"/batches/{tohex(root)}")
    member.claims.fetch(member.view.latest_round())


def test_members_get_the_same_list_though_the_server_gives_some_of_them_a_spoiled_one(
    batched, server
):
    world, relayed = batched, batched.makers[4]
    first, second = world.members.values()
    root, _ = server.view.batch(world.round_id)
    assert first.claims.lacks_batch(world.round)
    with pytest.raises(PeerRefused, match="batch is not here yet"):
        world.deliver(relayed)
    assert len(first.claims.of(world.round)) == 2, "as if it were empty"

    whole = json.loads(server.claims.stored(root))
    spoiled = [[client, commitment, "0x" + "00" * 65] for client, commitment, _ in whole]
    said = [b"{}"]
    route = Route("GET", "/batches/{hash}", lambda _: Response.binary(said[0]))
    with HttpServer("127.0.0.1:0", [route]) as liar:
        first.peers._server = second.peers._server = liar.url
        for member in (first, second):
            fetch(world, member)
            assert member.claims.lacks_batch(world.round), "nobody has it"
        said[0] = json.dumps(spoiled).encode()
        fetch(world, second)
        assert len(second.claims.of(world.round)) == 2, "nobody in it signed"
        first.peers._server = server.http.url
        fetch(world, first)
        fetch(world, second)  # which gets the signatures from the first
    claims = first.claims.of(world.round)
    assert claims == second.claims.of(world.round)
    assert [claim.client for claim in claims.values()] == [0, 1, 2, 3, 4]
    assert second.claims.has_committed(world.round, relayed.actor.address)
    assert not second.claims.has_committed(world.round, world.makers[5].actor.address)
    assert world.deliver(relayed)["audited"] == world.audited(relayed)


def test_fetched_list_survives_a_restart(batched, server):
    member = batched.members[1]
    member.peers._server = server.http.url
    fetch(batched, member)
    member.claims._read = {}
    assert len(member.claims.of(batched.round)) == 5 and not member.claims.lacks_batch(
        batched.round
    )


def test_a_direct_commitment_counts_before_that_in_a_batch(batched, server):
    member, twice = batched.members[1], batched.makers[1].actor.address
    member.peers._server = server.http.url
    fetch(batched, member)
    assert twice in member.claims.batch(batched.round).signed
    found = member.claims.commitments(batched.round)[twice]
    assert found == member.view.direct_commitment(batched.round_id, twice)


# --- the client


@pytest.fixture
def client(world, rehearsal, server, tmp_path):
    settings = rehearsal.settings(
        world.makers[4].actor, tmp_path / "client", world.job_id, server=server.http.url
    )
    with Client(
        ClientSettings.model_validate({**settings.model_dump(), "commit": "relayed"})
    ) as client:
        yield client


def test_a_client_commits_itself_if_the_batch_is_late_or_without_it(batched, client):
    world = batched
    round_, late = world.round, world.round.schedule.commit - 3
    own = entry(world, world.makers[4])
    assert not client._must_commit_itself(round_, own, Moment(1, late - 1))
    assert client._must_commit_itself(round_, own, Moment(1, late))
    moment = catch_up(client)
    round_ = client.view.latest_round()
    other = entry(world, world.makers[5])
    assert client._must_commit_itself(round_, other, moment)
    assert not client._must_commit_itself(round_, own, moment)
    fetch(world, world.member)
    client.peers._server = None
    assert not client._must_commit_itself(round_, own, moment), "members have the list too"


def test_a_client_does_not_train_on_other_data_than_it_enrolled_with(client):
    catch_up(client)
    with pytest.raises(JobUnusable, match="an audit would cost the deposit"):
        client._require_own_data()


def test_a_member_is_no_client_with_the_same_account(world, rehearsal, tmp_path):
    settings = rehearsal.settings(rehearsal.members[0], tmp_path, world.job_id)
    with pytest.raises(JobUnusable, match="a client needs an account of its own"):
        Client(ClientSettings.model_validate(settings.model_dump()))


def test_late_enrolment_is_refused(world, rehearsal, tmp_path):
    settings = rehearsal.settings(rehearsal.operator, tmp_path, world.job_id)
    late = Client(ClientSettings.model_validate(settings.model_dump()))
    with late, pytest.raises(JobUnusable, match="wait for another job"):
        late.act(catch_up(late))
