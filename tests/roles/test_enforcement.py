"""Slashes are requested once, and executed only if a second replay fails as well."""

from dataclasses import replace

import pytest
from roles_support import World

from opfl_chain.chain.bindings.types import MemberFault, Reason, SlashStatus
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.verdict import FaultReason, Verdict


@pytest.fixture(scope="module")
def job(rehearsal, tmp_path_factory):
    with World(rehearsal, tmp_path_factory.mktemp("world"), clients=8, rounds=20) as world:
        yield world


@pytest.fixture
def world(job, rehearsal):
    """A new round in which everybody is audited, because member 2 withholds its signature."""
    job.catch_up()
    if job.round is not None and job.round.over is None:
        if job.round.verdict_hash is None:
            rehearsal.mine_past(job.round.schedule.attest)
            rehearsal.send(rehearsal.operator, rehearsal.contracts.jobs.void_round(job.round_id))
        else:
            rehearsal.finalise(job.round_id, b"\1" * 32, b"\2" * 32)
        job.catch_up()
    active = [
        maker
        for maker in job.makers
        if job.member.view.client_status(maker.actor.address).name == "ACTIVE"
    ]
    job.active = active
    job.open(direct=active)
    rehearsal.publish_partials(job.round_id, (0, 1))
    rehearsal.mine_past(job.round.schedule.beacon)
    job.catch_up()
    return job


def decide(world, reason, members=(0, 1, 2)):
    """The verdict that the first active client is at fault."""
    accused, *others = world.active
    clients = world.member.view.clients()
    index = {maker: ClientIndex(clients[maker.actor.address].index) for maker in world.active}
    verdict = Verdict.of({index[each] for each in others}, {index[accused]: reason})
    world.rehearsal.attest(world.round_id, verdict, members)
    world.catch_up()
    return accused.actor.address


def slash_of(world, client):
    member = world.member
    member.catch_up()
    return member.view.slash(world.round.number, client)


def first(world):
    """The member whose turn it is."""
    return world.members[world.round.number % 3]


def enforce(world, member, **changes):
    now = replace(member.catch_up(), **changes)
    member.enforcement.act(member.view.latest_round(), now)
    member.catch_up()


def settle(world, member, client, **changes):
    now = replace(member.catch_up(), **changes)
    slash = member.view.slash(world.round.number, client)
    member.enforcement.act_on_slash(slash, now)
    member.catch_up()
    return member.view.slash(world.round.number, client).status


def test_nothing_follows_from_a_round_that_is_not_decided(world):
    enforce(world, first(world))
    assert world.member.view.pending_slashes() == []


def test_a_fault_is_requested_once_and_by_turn(world):
    client = decide(world, FaultReason.COMMITMENT_MISMATCH)
    decided = world.round.decided_at
    enforce(world, world.members[(world.round.number + 1) % 3], head=decided + 3)
    assert slash_of(world, client) is None
    for member in world.members.values():
        enforce(world, member, head=decided + 8)
        enforce(world, member, head=decided + 8)
    slash = slash_of(world, client)
    assert (slash.reason, slash.status) == (Reason.COMMITMENT_MISMATCH, SlashStatus.REQUESTED)


def test_after_the_deadline_nothing_is_requested(world):
    client = decide(world, FaultReason.COMMITMENT_MISMATCH)
    enforce(world, first(world), head=world.round.schedule.request)
    assert slash_of(world, client) is None


def test_fault_without_a_replay_is_executed_after_the_veto_window(world, chain):
    client = decide(world, FaultReason.NOT_DELIVERED)
    member = first(world)
    enforce(world, member)
    until = slash_of(world, client).executable_at
    assert settle(world, member, client, head=until - 2) is SlashStatus.REQUESTED
    chain.mine(until - chain.rpc.block_number())
    assert settle(world, member, client) is SlashStatus.EXECUTED


def test_a_failed_replay_is_paid_for_only_if_the_second_fails_too(world, chain):
    client = decide(world, FaultReason.REPLAY_OUTSIDE)
    member = first(world)
    enforce(world, member)
    slash = slash_of(world, client)
    chain.mine(slash.executable_at - chain.rpc.block_number())
    assert settle(world, member, client) is SlashStatus.REQUESTED, "nobody replayed it again"
    member.store.keep_second_replay(world.round.number, client, passed=False)
    assert settle(world, member, client) is SlashStatus.EXECUTED


def test_client_that_passes_the_second_replay_is_acquitted(world):
    client = decide(world, FaultReason.REPLAY_OUTSIDE)
    number, member = world.round.number, first(world)
    enforce(world, member)
    member.store.keep_second_replay(number, client, passed=True)
    assert settle(world, member, client) is SlashStatus.REQUESTED, "one member is not enough"
    world.members[(number + 1) % 3].store.keep_second_replay(number, client, passed=True)
    assert settle(world, member, client) is SlashStatus.VETOED


def test_acquitted_client_is_not_slashed_without_a_veto(world, chain):
    client = decide(world, FaultReason.REPLAY_OUTSIDE)
    member = first(world)
    enforce(world, member)
    member.store.keep_second_replay(world.round.number, client, passed=True)
    until = slash_of(world, client).executable_at
    chain.mine(until - chain.rpc.block_number())
    assert settle(world, member, client) is SlashStatus.REQUESTED


def test_without_a_second_replay_the_first_stands_when_it_was_waited_for_in_vain(world, chain):
    """Nobody could veto any more, and the captured amount would be stuck for ever."""
    client = decide(world, FaultReason.REPLAY_OUTSIDE)
    member = first(world)
    enforce(world, member)
    end = slash_of(world, client).executable_at + world.member.job.terms.phases.veto
    chain.mine(end - 1 - chain.rpc.block_number())
    assert settle(world, member, client, head=end - 1) is SlashStatus.REQUESTED
    assert settle(world, member, client, head=end) is SlashStatus.EXECUTED


def test_a_second_replay_is_awaited_where_we_hold_shares_and_not_for_ever(world):
    client = decide(world, FaultReason.REPLAY_OUTSIDE)
    member = first(world)
    enforce(world, member)
    now = member.catch_up()
    slash, number = slash_of(world, client), world.round.number
    awaits = member.enforcement.awaits_second_replay
    assert not awaits(slash, now), "nothing was delivered to us"
    member.store.keep_delivery(number, client, b"shares")
    assert awaits(slash, now)
    veto = world.member.job.terms.phases.veto
    assert awaits(slash, replace(now, head=slash.executable_at + veto - 1))
    assert not awaits(slash, replace(now, head=slash.executable_at + veto))
    assert not awaits(replace(slash, reason=Reason.NOT_DELIVERED), now)
    assert not awaits(replace(slash, status=SlashStatus.VETOED), now)
    member.store.keep_second_replay(number, client, passed=False)
    assert not awaits(slash, now)


def test_members_pay_for_what_shows_on_chain_and_nothing_else(world, rehearsal):
    """One dissents, and one withheld its part of the beacon."""
    decide(world, FaultReason.NOT_DELIVERED, members=(0,))
    everybody = Verdict.of({ClientIndex(0)}, {})
    rehearsal.attest(world.round_id, everybody, (1,))
    decide(world, FaultReason.NOT_DELIVERED, members=(2,))
    member = world.members[0]
    enforce(world, member, head=world.round.decided_at + 8)
    found = {
        (rank, fault)
        for rank, each in world.members.items()
        for fault in MemberFault
        if rehearsal.contracts.slashing.is_penalised(world.round_id, each.address, fault)
    }
    assert found == {(1, MemberFault.VERDICT_DISSENT), (2, MemberFault.BEACON_WITHHELD)}
    assert member.view.is_penalised(
        world.round_id, world.members[1].address, MemberFault.VERDICT_DISSENT
    )


def test_a_member_that_attested_nothing_pays_when_the_time_for_it_is_over(world, rehearsal):
    decide(world, FaultReason.COMMITMENT_MISMATCH, members=(0, 1))
    member, silent = world.members[0], world.members[2].address
    silence = MemberFault.VERDICT_SILENCE
    enforce(world, member, head=world.round.decided_at + 8)
    assert not rehearsal.contracts.slashing.is_penalised(world.round_id, silent, silence)
    rehearsal.mine_past(world.round.schedule.attest + 9)
    enforce(world, member)
    enforce(world, member)
    assert rehearsal.contracts.slashing.is_penalised(world.round_id, silent, silence)
