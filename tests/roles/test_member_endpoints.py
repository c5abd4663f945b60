"""A member accepts a client's own delivery, complete and in time, and signs for nothing else."""

import socket
from dataclasses import replace

import pytest
from roles_support import World

from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import unhex
from opfl_chain.protocol.delivery import decode_delivery, encode_delivery, largest_delivery
from opfl_chain.protocol.identifiers import round_id_of
from opfl_chain.protocol.shares import verify_components
from opfl_chain.protocol.statements import DeliveryReceipt
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.errors import PeerRefused

RANK = 1


@pytest.fixture(scope="module")
def world(rehearsal, tmp_path_factory):
    """A settled round in which all clients but the last committed."""
    with World(rehearsal, tmp_path_factory.mktemp("world"), ranks=(RANK,)) as world:
        world.open(direct=world.makers[:5])
        world.settle()
        yield world


@pytest.fixture
def fresh(world):
    """Nothing was delivered yet."""
    world.member.store.forget_deliveries(world.round.number)
    world.catch_up()
    return world


@pytest.fixture(scope="module")
def audited(world):
    return next(maker for maker in world.makers[:5] if world.audited(maker))


@pytest.fixture(scope="module")
def unaudited(world):
    return next(maker for maker in world.makers[:5] if not world.audited(maker))


def refused(world, status, said, maker, *args, **options):
    before = world.member.store.delivered(world.round.number)
    with pytest.raises(PeerRefused, match=said) as caught:
        world.deliver(maker, *args, **options)
    assert caught.value.status == status
    assert world.member.store.delivered(world.round.number) == before


def receipt_signer(world, maker, answer):
    receipt = DeliveryReceipt(
        world.job_id, world.round.number, maker.actor.address, answer["audited"]
    )
    return signer_of(receipt, world.rehearsal.domain, unhex(answer["signature"]))


@pytest.mark.parametrize("which", ["audited", "unaudited"])
def test_delivery_is_stored_and_receipted(fresh, which, request):
    maker = request.getfixturevalue(which)
    answer = fresh.deliver(maker)
    assert answer["audited"] == (which == "audited")
    assert receipt_signer(fresh, maker, answer) == fresh.member.address
    kept = fresh.member.store.delivery(fresh.round.number, maker.actor.address)
    assert kept == fresh.body(maker)


def test_the_same_again_gives_the_same_receipt_also_when_it_is_late(fresh, audited):
    first = fresh.deliver(audited)
    assert fresh.deliver(audited) == first
    fresh.member._moment = replace(fresh.member.moment, head=fresh.round.schedule.deliver + 1)
    assert fresh.deliver(audited) == first


def test_another_one_does_not_replace_the_first(fresh, unaudited):
    fresh.deliver(unaudited)
    other = replace(
        unaudited.deliveries(0, audited=False)[RANK], gradient=unaudited.committed(1).packages[RANK]
    )
    refused(fresh, 409, "another delivery", unaudited, encode_delivery(other))
    kept = fresh.member.store.delivery(fresh.round.number, unaudited.actor.address)
    assert kept == fresh.body(unaudited)


def test_delivery_for_another_seed_is_replaced(fresh, audited):
    """After a reorganisation the client is audited, and was not before."""
    number, address = fresh.round.number, audited.actor.address
    fresh.member.store.keep_delivery(number, address, fresh.body(audited, audited=False))
    assert fresh.deliver(audited)["audited"]
    assert fresh.member.store.delivery(number, address) == fresh.body(audited)


def test_no_receipt_of_an_audit_for_what_has_no_input_even_if_it_is_kept(fresh, audited):
    body = fresh.body(audited, audited=False)
    fresh.member.store.keep_delivery(fresh.round.number, audited.actor.address, body)
    refused(fresh, 422, "audited, but its delivery has no input and no advice", audited, body)


def test_delivery_of_a_stranger_is_refused(fresh, audited):
    stranger = fresh.rehearsal.operator.address
    refused(fresh, 403, "not a client of this job", audited, address=stranger)


def test_delivery_without_a_commitment_is_refused(fresh):
    refused(fresh, 403, "did not commit in this round", fresh.makers[5])


@pytest.mark.parametrize("address", ["0x1234", "nobody", "0x" + "zz" * 20])
def test_malformed_address_is_refused(fresh, audited, address):
    refused(fresh, 404, "not an address", audited, address=address)


def test_an_envelope_that_somebody_else_signed(fresh, audited, unaudited):
    body = fresh.body(audited)
    facts = {"client": audited.actor.address}
    forged = fresh.envelope(unaudited, body, **facts)
    refused(fresh, 401, "not signed by the client", audited, body, forged)


@pytest.mark.parametrize(
    "changes",
    [
        {"round": 1},
        {"job": 99},
        {"member": "0x" + "11" * 20},
        {"content_hash": b"\1" * 32},
    ],
    ids=["another round", "another job", "another member", "another body"],
)
def test_an_envelope_for_something_else(fresh, audited, changes):
    body = fresh.body(audited)
    signature = fresh.envelope(audited, body, **changes)
    refused(fresh, 401, "not signed by the client", audited, body, signature)


@pytest.mark.parametrize("signature", [b"", b"\0" * 65, b"\xff" * 65, b"\1" * 64])
def test_malformed_signature_is_refused(fresh, audited, signature):
    refused(fresh, 401, "not signed by the client", audited, signature=signature)


def test_before_the_daemon_knows_where_the_chain_is(fresh, audited):
    fresh.member._moment = None
    refused(fresh, 425, "try again", audited)


def test_after_the_deadline(fresh, audited):
    deliver = fresh.round.schedule.deliver
    fresh.member._moment = replace(fresh.member.moment, head=deliver)
    fresh.deliver(audited)
    fresh.member.store.forget_deliveries(fresh.round.number)
    fresh.member._moment = replace(fresh.member.moment, head=deliver + 1)
    refused(fresh, 410, f"ended at block {deliver}", audited)


@pytest.mark.parametrize("round_id", ["1", "0", "-1", "1e9", "9" * 40, round_id_of(1, 9)])
def test_a_round_that_is_not_known(fresh, audited, round_id):
    refused(fresh, 404, "is known here", audited, round_id=round_id)


def test_an_audited_delivery_needs_input_and_advice(fresh, audited):
    whole = audited.deliveries(0, audited=True)[RANK]
    body = encode_delivery(replace(whole, training_input=None))
    refused(fresh, 422, "has no input", audited, body)
    body = encode_delivery(replace(whole, advice=None))
    refused(fresh, 422, "has no advice", audited, body)


def test_without_an_audit_neither_input_nor_advice_is_taken(fresh, unaudited):
    whole = unaudited.deliveries(0, audited=True)[RANK]
    for kept_back in ({"training_input": None}, {"advice": None}, {}):
        body = encode_delivery(replace(whole, **kept_back))
        refused(fresh, 422, "do not send input or advice", unaudited, body)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: b"",
        lambda body: b"OPFD",
        lambda body: b"X" + body[1:],
        lambda body: body[:-1],
        lambda body: body + b"\0",
        lambda body: body[:29] + b"\xff" * 15 + body[44:],
    ],
    ids=["nothing", "a start", "another magic", "cut off", "too long", "another package"],
)
def test_malformed_delivery_is_refused(fresh, unaudited, spoil):
    refused(fresh, 400, "delivery|package", unaudited, spoil(fresh.body(unaudited)))


def test_shares_for_another_member(fresh, unaudited):
    parts = unaudited.deliveries(0, audited=False)
    refused(fresh, 400, "package", unaudited, encode_delivery(parts[RANK - 1]))


def test_body_larger_than_any_delivery_is_not_read(fresh, unaudited):
    most = largest_delivery(fresh.member.judging.expected)
    refused(fresh, 413, f"{most} are allowed", unaudited, bytes(most + 1))


def test_a_sender_that_drips_keeps_nobody_waiting(fresh, unaudited):
    host, port = split_address(fresh.member.http.url.removeprefix("http://"))
    body, address = fresh.body(unaudited), unaudited.actor.address
    line = f"POST /rounds/{fresh.round_id}/deliveries/{address} HTTP/1.1"
    head = f"{line}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, port)) as dripping:
        dripping.sendall(head.encode() + body[:100])
        assert not fresh.deliver(unaudited)["audited"]


def test_no_member_holds_enough_to_see_a_gradient(fresh, unaudited):
    fresh.deliver(unaudited)
    kept = fresh.member.store.delivery(fresh.round.number, unaudited.actor.address)
    package = decode_delivery(kept, fresh.member.judging.expected).gradient
    own, following = verify_components(package)
    gradient = unaudited.gradient(fresh.round.number).view("<u8")
    for known in (own, following, own + following):
        assert (known == gradient).sum() < 3


def test_nothing_is_said_before_there_is_something(fresh, audited):
    def said(path):
        with pytest.raises(PeerRefused) as caught:
            fresh.http.get(fresh.member.http.url, "", path, 1 << 16)
        return caught.value.status

    for what in ("partial", "sum", "result", f"acquittals/{audited.actor.address}"):
        assert said(f"/rounds/{fresh.round_id}/{what}") == 404
    for what in ("models", "aggregates", "batches"):
        for name in ("0x" + "11" * 32, "0x11", "x" * 66, "../state.sqlite"):
            assert said(f"/{what}/{name}") == 404


def test_a_round_that_is_not_settled_takes_nothing(rehearsal, tmp_path):
    with World(rehearsal, tmp_path, ranks=(RANK,), clients=1) as world:
        world.open()
        maker = world.makers[0]
        refused(world, 425, "not yet known who is audited", maker, world.body(maker, audited=True))
        rehearsal.mine_past(world.round.schedule.beacon)
        world.catch_up()
        assert world.round.seed is None
        assert world.deliver(maker)["audited"]  # without a seed everybody is
