"""What all daemons do: send once, wait where waiting helps, and leave with all of their money."""

import logging

import pytest
from node_stage import SeatedMember, World

from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.errors import NodeRefused, RpcUnavailable
from opfl_chain.chain.sender_store import State
from opfl_chain.nodes.client import Client
from opfl_chain.nodes.errors import JobUnusable, ModelMissing, StateForeign
from opfl_chain.nodes.node import Moment
from opfl_chain.nodes.settings import ClientSettings
from opfl_chain.protocol.identifiers import ClientIndex, round_id_of
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.rehearsal.terms import ETHER, STAKE
from opfl_chain.transport.errors import TransportError


@pytest.fixture(scope="module")
def world(stage, tmp_path_factory):
    with World(stage, tmp_path_factory.mktemp("world"), ranks=(0,), clients=2) as world:
        yield world


def announce(world, url):
    return world.stage.contracts.jobs.announce_endpoint(world.job_id, url)


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
    call = world.stage.contracts.jobs.open_round(world.job_id)
    with caplog.at_level(logging.INFO):
        assert not member.send(call, "open too early")
        assert not member.send(call, "open too early")
    refused = [record for record in caplog.records if record.message == "not executed"]
    assert len(refused) == 1 and "EnrolmentStillOpen" in refused[0].reason


def test_an_intent_that_lost_its_nonce_to_a_stranger_is_sent_anew(world, monkeypatch):
    """Somebody used the key elsewhere: the stored transaction can never be mined."""
    member, stage = world.member, world.stage
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
    stage._rpc.request("anvil_impersonateAccount", member.address)
    stage._rpc.request("eth_sendTransaction", stranger)
    stage._rpc.request("anvil_stopImpersonatingAccount", member.address)
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
    assert [r.levelname for r in caplog.records if r.message == "not done yet"] == ["WARNING"] * 3
    with member.duty("duty slow"):
        raise TransportError("slow")
    assert len([r for r in caplog.records if r.message == "not done yet"]) == 3, "not every time"
    with pytest.raises(RpcUnavailable), member.duty("without a node there is nothing to do"):
        raise RpcUnavailable("http://node", "no connection")


def test_the_state_of_another_account_is_refused(world, stage, tmp_path):
    settings = stage.settings(stage.members[1], tmp_path / "one", world.job_id)
    SeatedMember(settings).close()
    other = stage.settings(stage.members[2], tmp_path / "other", world.job_id)
    with pytest.raises(StateForeign, match="give this daemon a folder of its own"):
        SeatedMember(other.model_copy(update={"state": settings.state}))


def test_a_job_that_is_not_there_is_said_to_be_none(world, stage, tmp_path):
    with pytest.raises(JobUnusable, match="there is no job 99"):
        SeatedMember(stage.settings(stage.members[1], tmp_path, 99))


def test_health_says_where_a_daemon_is_and_nothing_secret(world):
    world.member.catch_up()
    health = world.member._health()
    assert health["role"] == "committee" and health["address"] == world.member.address
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
    }


def leave(node, role, unbond, chain):
    """Act as a daemon does, block after block, until it has its money; returns how often."""
    for step in range(1, 60):
        if node.take_money(role, unbond, node.catch_up()):
            return step
        unbonding = node.view.unbonding(node.address, role)
        if unbonding is not None:
            chain.mine(max(1, unbonding[0] - chain.rpc.block_number() - 1))
    raise AssertionError("it never got its money")


def test_members_of_a_job_that_never_started_get_their_stakes_back(stage, chain, tmp_path):
    job_id = stage.create_real_job()
    call = stage.contracts.jobs.join_committee(job_id, value=STAKE)
    stage.send(stage.members[0], call)
    with SeatedMember(stage.settings(stage.members[0], tmp_path, job_id)) as member:
        now = member.catch_up()
        assert not member.view.is_stillborn(now.seen)
        unbond = stage.contracts.jobs.unbond_stake(job_id)
        assert not member.take_money(Role.MEMBER, unbond, now), "too early: the contract refuses"
        stage.mine_past(member.job.enrolment_end)
        now = member.catch_up()
        assert member.view.is_stillborn(now.seen)
        member._sending.succeeded("unbond")
        before = stage.balance(member.address)
        leave(member, Role.MEMBER, unbond, chain)
        assert before + STAKE - stage.balance(member.address) < ETHER // 100  # gas


def test_clients_of_a_job_that_never_started_leave_by_themselves(stage, chain, tmp_path):
    job_id = stage.create_real_job()
    settings = stage.settings(stage.clients[0], tmp_path, job_id)
    with Client(ClientSettings.model_validate(settings.model_dump())) as client:

        def act():
            step = client.cursor.catch_up()
            client.act(Moment(step.position, step.target))

        before = stage.balance(client.address)
        act()
        assert stage.balance(client.address) < before - 9 * ETHER
        stage.mine_past(client.job.enrolment_end)
        act()
        act()
        until, _ = client.view.unbonding(client.address, Role.CLIENT)
        stage.mine_past(until)
        act()
        assert client.done
        assert before - stage.balance(client.address) < ETHER // 100


def test_credit_that_comes_late_is_withdrawn_as_well(world, stage, chain):
    """A slash is executed between the first withdrawal and the last."""
    member = world.member
    world.open()
    world.settle()
    faults = {ClientIndex(i): FaultReason.COMMITMENT_MISMATCH for i in (0, 1)}
    verdict = Verdict.of(set(), faults)
    stage.attest(world.round_id, verdict, (0, 1, 2))
    for position in (0, 1):
        stage.request_slash(world.round_id, stage.clients[position], verdict, position)
    jobs, deposits = stage.contracts.jobs, stage.contracts.deposits
    for _ in range(8):  # void rounds close the job
        stage.mine_past(jobs.schedule(jobs_round(world)).finalise + 1)
        if jobs.progress(world.job_id).closed:
            break
        stage.send(stage.operator, jobs.void_round(jobs_round(world)))
        if jobs.progress(world.job_id).closed:
            break
        stage.open_round(world.job_id)
    world.catch_up()
    assert member.view.is_closed
    stage.execute_slash(world.round_id, stage.clients[0])
    assert not member.take_money(Role.MEMBER, jobs.unbond_stake(world.job_id), member.catch_up())
    until, _ = (member.catch_up(), member.view.unbonding(member.address, Role.MEMBER))[1]
    stage.mine_past(until)
    first = deposits.credit_of(member.address)
    assert first > 0
    now = member.catch_up()
    member.send(deposits.withdraw_credit(member.address), f"withdraw credit at {now.head - 1}")
    stage.execute_slash(world.round_id, stage.clients[1])
    assert deposits.credit_of(member.address) == first
    assert member.take_money(Role.MEMBER, jobs.unbond_stake(world.job_id), member.catch_up())
    assert deposits.credit_of(member.address) == 0


def jobs_round(world):
    number = world.stage.contracts.jobs.progress(world.job_id).next_round - 1
    return round_id_of(world.job_id, number)
