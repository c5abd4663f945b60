"""Behaviour of all daemons: send once, retry where it helps, and withdraw everything."""

import logging
import time
from types import SimpleNamespace

import pytest
from played import QuietNode

from opfl_chain.chain.bindings.types import MemberFault, Role
from opfl_chain.chain.errors import NodeRefused, RpcUnavailable
from opfl_chain.chain.send.store import State
from opfl_chain.chain.terms import STAKE
from opfl_chain.protocol.economics import ETHER
from opfl_chain.roles.client.client import Client
from opfl_chain.roles.node import Moment
from opfl_chain.roles.settings import (
    ClientSettings,
    DataSettings,
    JobUnusable,
    ModelMissing,
    StateForeign,
)
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.limits import Limits


@pytest.fixture(scope="module")
def world(player, tmp_path_factory):
    """A job, and the daemon of its first member."""
    job = player.create_real_job()
    player.join(job, player.members)
    player.enrol(job, player.clients[:2])
    folder = tmp_path_factory.mktemp("world")
    with QuietNode(player.settings(player.members[0], folder, job)) as member:
        yield SimpleNamespace(player=player, job=job, member=member)


def announce(world, url):
    return world.player.contracts.jobs.announce_endpoint(world.job, url)


def test_a_transaction_is_executed_once_for_its_key(world):
    member = world.member
    member.catch_up()
    before = member.view.announcements(member.address)
    for _ in range(3):
        assert member.send(announce(world, "https://a.example"), "announce a")
    member.catch_up()
    assert member.view.announcements(member.address) == before + 1


def test_a_refusal_is_no_error_and_is_not_asked_for_again_at_once(world, caplog):
    member = world.member
    call = world.player.contracts.rounds.open_round(world.job)
    with caplog.at_level(logging.INFO):
        assert not member.send(call, "open too early")
        assert not member.send(call, "open too early")
    refused = [record for record in caplog.records if record.message == "not executed"]
    assert len(refused) == 1 and "EnrolmentStillOpen" in refused[0].reason


def test_an_intent_that_lost_its_nonce_to_a_stranger_is_sent_anew(world, monkeypatch):
    """Somebody used the key elsewhere: the stored transaction can never be mined."""
    member, rpc = world.member, world.player.rpc
    monkeypatch.setattr(member.sender._settlement, "_resend_after", 0.2)
    call = announce(world, "https://b.example")
    key = "announce b"
    store = member.sender._store
    with monkeypatch.context() as patch:
        patch.setattr(member.sender._broadcaster, "send", lambda attempts: None)
        member.sender.submit(call, key)  # stored, and killed before it was sent
    nonce = member.sender.nonce_of(key)
    stranger = {
        "from": member.address,
        "to": member.address,
        "value": "0x1",
        "nonce": hex(nonce),
    }
    rpc.request("anvil_impersonateAccount", member.address)
    rpc.request("eth_sendTransaction", stranger)
    while rpc.nonce(member.address) == nonce:  # blocks are made after the answer
        time.sleep(0.01)
    rpc.request("anvil_stopImpersonatingAccount", member.address)
    assert member.send(call, key)
    member.catch_up()
    assert member.view.endpoints()[member.address] == "https://b.example"
    assert store.find(key).state is State.DISPLACED


def test_a_duty_that_cannot_be_done_keeps_nobody_from_the_next(world, caplog):
    member = world.member
    done = []
    for error in (TransportError("slow"), ModelMissing("none"), NodeRefused("x", "y")):
        with member.duty(f"duty {error}"):
            raise error
        done.append(error)
    assert len(done) == 3
    assert [r.levelname for r in caplog.records if r.message == "duty failed"] == ["WARNING"] * 3
    with member.duty("duty slow"):
        raise TransportError("slow")
    assert len([r for r in caplog.records if r.message == "duty failed"]) == 3, "not every time"
    with pytest.raises(RpcUnavailable), member.duty("without a node there is nothing to do"):
        raise RpcUnavailable("http://node", "no connection")


def test_the_state_of_another_account_is_refused(world, player, tmp_path):
    settings = player.settings(player.members[1], tmp_path / "one", world.job)
    QuietNode(settings).close()
    other = player.settings(player.members[2], tmp_path / "other", world.job)
    with pytest.raises(StateForeign, match="give this daemon a folder of its own"):
        QuietNode(other.model_copy(update={"state": settings.state}))


def test_a_job_that_is_not_there_is_said_to_be_none(world, player, tmp_path):
    with pytest.raises(JobUnusable, match="job 99 does not exist"):
        QuietNode(player.settings(player.members[1], tmp_path, 99))


def test_a_slow_peer_is_not_cut_off_in_virtual_time(world, player, tmp_path):
    settings = player.settings(player.members[1], tmp_path, world.job)
    virtual = settings.chain.model_copy(update={"time": "virtual"})
    with QuietNode(settings) as real:
        assert real.limits == Limits()
    with QuietNode(settings.model_copy(update={"chain": virtual})) as member:
        assert member.limits.receive_seconds == member.limits.answer_seconds == 600
        assert member.peers._http._seconds == member.peers._http._connect_seconds == 600


def test_health_says_where_a_daemon_is_and_nothing_secret(world):
    world.member.catch_up()
    health = world.member._health()
    assert health["role"] == "quiet" and health["address"] == world.member.address
    assert health["block"] == world.member.moment.seen
    assert set(health) == {
        "role",
        "address",
        "job",
        "block",
        "head",
        "uptime_seconds",
        "cpu_seconds",
        "bytes_sent",
        "bytes_received",
        "activity",
        "busy",
        "settled_at",
        "transaction",
        "meeting",
        "next_block",
    }


def leave(node, role, unbond, chain):
    """Act like a daemon, block after block, until it has withdrawn; return the number of acts."""
    for step in range(1, 60):
        if node.take_money(role, unbond, node.catch_up()):
            return step
        unbonding = node.view.unbonding(node.address, role)
        if unbonding is not None:
            chain.mine(max(1, unbonding[0] - chain.rpc.block_number() - 1))
    raise AssertionError("it never got its money")


def test_members_of_a_job_that_never_started_get_their_stakes_back(player, chain, tmp_path):
    job = player.create_real_job()
    player.join(job, player.members[:1])
    with QuietNode(player.settings(player.members[0], tmp_path, job)) as member:
        now = member.catch_up()
        assert not member.view.is_stillborn(now.seen)
        unbond = player.contracts.jobs.unbond_stake(job)
        assert not member.take_money(Role.MEMBER, unbond, now), "too early: the contract refuses"
        player.mine_past(member.job.enrolment_end)
        now = member.catch_up()
        assert member.view.is_stillborn(now.seen)
        member._sending.succeeded("unbond")
        before = player.rpc.balance(member.address)
        leave(member, Role.MEMBER, unbond, chain)
        assert before + STAKE - player.rpc.balance(member.address) < ETHER // 100  # gas


def test_clients_of_a_job_that_never_started_leave_by_themselves(player, tmp_path):
    job = player.create_real_job()
    data = DataSettings(dataset="synthetic")
    settings = player.settings(player.clients[0], tmp_path, job, ClientSettings, data=data)
    with Client(settings) as client:

        def act():
            step = client.cursor.catch_up()
            client.act(Moment(step.position, step.target))

        before = player.rpc.balance(client.address)
        act()
        assert player.rpc.balance(client.address) < before - 9 * ETHER
        player.mine_past(client.job.enrolment_end)
        act()
        act()
        until, _ = client.view.unbonding(client.address, Role.CLIENT)
        player.mine_past(until)
        act()
        assert client.done
        assert before - player.rpc.balance(client.address) < ETHER // 100


def test_an_account_of_the_roster_is_no_client(player, tmp_path):
    job = player.create_real_job()
    settings = player.settings(player.standbys[0], tmp_path, job, ClientSettings)
    with pytest.raises(JobUnusable, match="is a member or standby of job"):
        Client(settings)


def test_credit_that_comes_late_is_withdrawn_as_well(player, tmp_path):
    """Penalties of other members compensate us, between the first withdrawal and the last."""
    job = player.create_real_job(rounds=1)
    player.join(job, player.members)
    player.enrol(job, player.clients[:3])
    round_id = player.open_round(job)
    roll = player.roll(round_id, [0, 1, 2])
    player.commit_roll(round_id, roll)
    player.publish_partials(round_id, roll, player.members[:1])
    player.mine_past(player.schedule(round_id).beacon)
    player.attest(round_id, [0, 1, 2], player.members)
    player.finalise(round_id)
    deposits, unbond = player.contracts.deposits, player.contracts.jobs.unbond_stake(job)
    with QuietNode(player.settings(player.members[0], tmp_path, job)) as member:
        player.penalise(round_id, player.members[1], MemberFault.WITHHELD)
        assert not member.take_money(Role.MEMBER, unbond, member.catch_up())
        member.catch_up()
        until, _ = member.view.unbonding(member.address, Role.MEMBER)
        player.mine_past(until)
        first = deposits.credit_of(member.address)
        assert first > 0
        now = member.catch_up()
        member.send(deposits.withdraw_credit(member.address), f"withdraw credit at {now.head - 1}")
        player.penalise(round_id, player.members[2], MemberFault.WITHHELD)
        assert deposits.credit_of(member.address) > 0
        assert member.take_money(Role.MEMBER, unbond, member.catch_up())
        assert deposits.credit_of(member.address) == 0
