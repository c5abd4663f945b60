"""The view of a daemon equals the contracts' state, also after a reorganisation."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from contract_player import passes_of

from opfl_chain.chain.bindings.types import (
    ChargeStatus,
    ClientStatus,
    MemberFault,
    Outcome,
    Role,
    RoundStatus,
)
from opfl_chain.chain.terms import DEPOSIT, PAY
from opfl_chain.protocol.identifiers import JobId
from opfl_chain.roles.job import Job
from opfl_chain.roles.settings import JobUnusable
from opfl_chain.roles.view.records import on_public_roll
from opfl_chain.roles.view.view import ChainView

URLS = [f"https://member-{i}.example" for i in range(5)]
EVERYBODY = range(6)


@pytest.fixture(scope="module")
def played(player, chain):
    """A final round; one with two held audits, a dissenter and no beacon; one without a roll.

    Before the third a standby takes a seat and a client asks for its deposit.
    """
    other = player.create_real_job()
    player.enrol(other, player.clients[:1])  # of another job, which must be ignored
    job = player.create_real_job(rounds=3)
    player.join(job, [*player.members, player.standbys[1]])
    player.enrol(job, player.clients[:6])
    for url, actor in zip(URLS, player.roster, strict=True):
        player.announce(job, actor, "http://before")
        player.announce(job, actor, url)
    root = player.contracts.jobs.replace_dataset_root(job, b"\7" * 32)
    player.send(player.clients[5], root)

    first = player.open_round(job)
    roll = player.roll_with(job, first, EVERYBODY, audited=[2], spared=[0])
    player.commit_roll(first, roll)
    player.publish_beacon(first, roll)
    player.attest(first, EVERYBODY, player.members)
    player.finalise(first)

    second = player.open_round(job)
    roll = player.roll(second, range(5))
    player.commit_roll(second, roll)
    player.publish_partials(second, roll, player.members[:2])
    player.mine_past(player.schedule(second).beacon)
    player.attest(second, [0, 1, 4], player.members[:2])
    player.attest(second, EVERYBODY[:5], player.members[2:])
    player.penalise(second, player.members[2], MemberFault.DISSENT)
    player.hold(second, roll, [0, 1, 4], 2)
    player.hold(second, roll, [0, 1, 4], 3)
    player.acquit(second, 3)
    player.finalise(second)
    player.send(player.clients[4], player.contracts.jobs.unbond_deposit(job))
    player.change_seat(job, 2, player.standbys[1])

    third = player.open_round(job)
    player.void(third, player.schedule(third).roll)
    player.charge(second, 2, Outcome.OUTSIDE)
    player.claim(player.clients[0], [first, second], [EVERYBODY, [0, 1, 4]])
    player.claim_service(player.members[0], [second])
    player.mine_past(player.schedule(third).attest)
    player.refund(job)
    player.send(player.members[0], player.contracts.jobs.unbond_stake(job))
    return SimpleNamespace(
        job=Job.find(chain.rpc, player.deployment, job),
        rounds=[first, second, third],
        roll=roll,
    )


@pytest.fixture
def view(played, player, chain, tmp_path):
    view = ChainView(played.job, tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, player.deployment.block, 0) as cursor:
        cursor.catch_up()
        yield view
    view.close()


def test_a_job_is_read_from_the_chain_alone(played, player):
    job = played.job
    assert job.policy == player.policy and job.boundary == player.boundary
    assert job.terms == player.contracts.jobs.terms(job.id)
    assert job.enrolment_end == player.contracts.jobs.participants(job.id).enrol_deadline
    assert job.roster == tuple(actor.address for actor in player.roster)


def test_a_job_that_is_not_there_is_said_to_be_none(player, chain):
    with pytest.raises(JobUnusable, match=r"job 77 does not exist at .* have \d+ jobs"):
        Job.find(chain.rpc, player.deployment, JobId(77))


def test_rounds_are_what_the_contracts_say(view, played, player):
    rounds, beacon = player.contracts.rounds, player.contracts.beacon
    assert [each.id for each in view.rounds()] == played.rounds
    statuses = {RoundStatus.FINALISED: "finalised", RoundStatus.VOID: "void"}
    for each in view.rounds():
        stated = rounds.round(each.id)
        assert each.schedule == rounds.schedule(each.id)
        assert (each.opening, each.epoch, each.opened_at) == (
            stated.opening,
            stated.epoch,
            stated.opened_at,
        )
        assert (each.verdict_hash or bytes(32)) == stated.verdict_hash
        assert each.over == statuses[stated.status]
        assert (each.seed or bytes(32)) == beacon.seed_of(each.id)
        assert (each.roll.root if each.roll else bytes(32)) == stated.root
        assert (each.roll.count if each.roll else 0) == stated.count
        assert list(view.seats_of(each)) == list(rounds.seats_of(each.id))
        for client in view.clients():
            if each.roll is not None:
                assert view.is_audited(each, client) == beacon.is_audited(each.id, client)
    assert view.is_closed and rounds.progress(played.job.id).closed
    assert view.latest_round().id == played.rounds[-1]
    assert [each.id for each in view.finalised_rounds()] == played.rounds[:2]
    final = view.finalised_rounds()[-1].next_model_hash
    assert rounds.progress(played.job.id).model_hash == final
    assert view.rounds_opened_since(view.rounds()[1].opened_at) == view.rounds()[1:]


def test_rolls_are_read_from_their_pairs(view, played, player):
    first, second, third = view.rounds()
    assert third.roll is None and third.rolled_at is None
    assert second.rolled_at > second.opened_at
    commitments = [played.roll.evidence[each.address].commitment for each in player.clients[:5]]
    assert second.roll.commitments == dict(enumerate(commitments))
    assert [view.on_roll(second, each.address) for each in player.clients[3:6]] == [
        True,
        True,
        False,
    ]
    assert view.on_roll(first, player.clients[5].address)
    assert not view.on_roll(first, player.operator.address)
    assert not view.on_roll(third, player.clients[0].address)


def test_eligible_are_those_who_were_active_when_the_round_opened(view, player):
    first, second, third = view.rounds()
    assert [each.index for each in view.eligible(first, on_public_roll)] == list(EVERYBODY)
    assert view.eligible(second, on_public_roll) == view.eligible(first, on_public_roll)
    # One is held, one has asked for its deposit. The third was acquitted, and is back.
    assert [each.index for each in view.eligible(third, on_public_roll)] == [0, 1, 3, 5]


def test_seats_are_what_the_contracts_say(view, played, player):
    assert list(view.seats()) == list(player.contracts.jobs.seats(played.job.id))
    assert view.epoch == player.contracts.jobs.participants(played.job.id).epoch == 1
    assert view.seats()[2] == player.standbys[1].address
    assert view.bench() == [player.members[2].address], "the other standby never joined"


def test_parties_are_what_the_contracts_say(view, played, player):
    job, jobs, deposits = played.job, player.contracts.jobs, player.contracts.deposits
    assert len(view.clients()) == 6
    for address, client in view.clients().items():
        stated = jobs.client(job.id, address)
        assert (client.index, client.root) == (stated.index, stated.dataset_root)
        assert view.client(address) == view.client_at(client.index) == client
        assert view.client_status(address) is stated.status
        until = deposits.account(job.id, Role.CLIENT, address).withdrawable_at
        assert (view.unbonding(address, Role.CLIENT) or (0, False))[0] == until
    assert view.client_status(player.clients[2].address) is ClientStatus.SUSPENDED
    assert view.client_status(player.operator.address) is ClientStatus.UNKNOWN
    assert view.client(player.operator.address) is None and view.client_at(6) is None
    for number, actor in enumerate(player.roster):
        assert view.joined(actor.address) == (number != 3)
        key = player.sealing_key(actor).public if number != 3 else None
        assert view.sealing_key(actor.address) == key
        assert view.public_key(actor.address) == player.contracts.beacon.key_of(actor.address)
        assert view.endpoints()[actor.address] == URLS[number]
        assert view.announcements(actor.address) == 2
    assert view.unbonding(player.members[0].address, Role.MEMBER) is not None
    assert view.unbonding(player.members[1].address, Role.MEMBER) is None


def test_a_status_is_known_for_every_block(view, player, chain):
    leaver = player.clients[4].address
    blocks = [
        n
        for n in range(chain.rpc.block_number())
        if view.client_status(leaver, n) is not ClientStatus.ACTIVE
    ]
    assert view.client_status(leaver, blocks[0] - 1) is ClientStatus.ACTIVE
    assert view.client_status(leaver, blocks[0]) is ClientStatus.LEAVING


def test_charges_and_penalties_are_what_the_contracts_say(view, played, player):
    second, contract = view.rounds()[1], player.contracts.charges
    assert len(view.charges()) == 2
    for each in view.charges():
        stated = contract.charge_of(second.id, each.client)
        assert (each.status, each.held, each.held_at) == (
            stated.status,
            stated.held,
            stated.held_at,
        )
        assert view.charge(second, each.client) == each
        assert each.decided_at > each.held_at and each.round == 1
    charged, acquitted = (view.charge(second, player.clients[n].address) for n in (2, 3))
    assert (charged.outcome, charged.held) == (Outcome.OUTSIDE, DEPOSIT)
    assert (acquitted.status, acquitted.outcome) == (ChargeStatus.ACQUITTED, Outcome.PASSED)
    assert view.charge(second, player.clients[0].address) is None
    assert view.undecided() == []
    for member in player.members:
        for fault in MemberFault:
            stated = contract.is_penalised(second.id, member.address, fault)
            assert view.is_penalised(second.id, member.address, fault) == stated
    (penalty,) = view.penalties()
    assert (penalty.member, penalty.fault) == (player.members[2].address, MemberFault.DISSENT)
    assert penalty.amount == played.job.terms.penalties.dissent


def test_what_was_paid_is_known(view, player):
    assert view.claims(player.clients[0].address) == {0: PAY.client, 1: PAY.client}
    assert view.claims(player.members[0].address) == {1: PAY.member}
    assert view.claims(player.clients[1].address) == {}
    assert view.is_refunded


def test_the_verdict_is_the_one_that_was_decided_not_the_dissenting_one(view):
    first, second, third = view.rounds()
    assert view.decided_passes(first) == passes_of(EVERYBODY)
    assert view.decided_passes(second) == passes_of([0, 1, 4])
    assert len(view.attestations(second.id)) == 3
    assert view.decided_passes(third) is None


def test_partial_signatures_are_known(view, played, player):
    first, second, _ = played.rounds
    assert view.published_partials(second) == {m.address for m in player.members[:2]}
    assert view.published_partials(first) == set()


def test_without_a_roll_nothing_is_settled_and_without_a_seed_after_the_deadline(view):
    round_, beacon = view.rounds()[1], view.rounds()[1].schedule.beacon
    assert round_.seed is None and round_.settled(beacon) and not round_.settled(beacon - 1)
    assert not replace(round_, roll=None).settled(beacon)
    assert view.rounds()[0].settled(0)


def test_a_job_without_all_members_or_without_clients_cannot_start(player, chain, tmp_path):
    job_id = player.create_real_job()
    player.join(job_id, [*player.members[:1], *player.standbys])
    job = Job.find(chain.rpc, player.deployment, job_id)
    view = ChainView(job, tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, player.deployment.block, 0) as cursor:
        cursor.catch_up()
        assert not view.can_start
        assert view.is_stillborn(job.enrolment_end)
        assert not view.is_stillborn(job.enrolment_end - 1)
    view.close()


def test_the_root_alone_does_not_say_who_is_on_the_roll(player, chain, tmp_path):
    job_id = player.create_real_job(public_roll=False)
    player.join(job_id, player.members)
    player.enrol(job_id, player.clients[:3])
    round_id = player.open_round(job_id)
    player.commit_roll(round_id, player.roll(round_id, [0, 1]), public=False)
    view = ChainView(Job.find(chain.rpc, player.deployment, job_id), tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, player.deployment.block, 0) as cursor:
        cursor.catch_up()
        assert view.latest_round().roll.count == 2
        assert view.on_roll(view.latest_round(), player.clients[0].address) is None
    view.close()


@pytest.mark.parametrize("public", [True, False])
def test_who_has_an_undecided_audit_of_any_earlier_round_is_not_eligible(
    player, chain, tmp_path, public
):
    """Its audit is not held for a round, so that the chain does not suspend it."""
    job_id = player.create_real_job(public_roll=public)
    player.join(job_id, player.members)
    player.enrol(job_id, player.clients[:3])
    round_id = player.open_round(job_id)
    roll = player.roll_with(job_id, round_id, [0, 1], audited=[1])
    player.commit_roll(round_id, roll, public=public)
    player.publish_beacon(round_id, roll)
    player.attest(round_id, [0], player.members[:2])
    player.finalise(round_id)
    empty = player.open_round(job_id)
    player.void(empty, player.schedule(empty).roll)
    third = player.open_round(job_id)
    player.hold(round_id, roll, [0], 1)
    player.acquit(round_id, 1)
    player.void(third, player.schedule(third).roll)
    player.open_round(job_id)
    view = ChainView(Job.find(chain.rpc, player.deployment, job_id), tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, player.deployment.block, 0) as cursor:
        cursor.catch_up()
        eligible = [
            [each.index for each in view.eligible(round_, lambda _: {0, 1})]
            for round_ in view.rounds()
        ]
        assert eligible == [[0, 1, 2], [0, 2], [0, 2], [0, 1, 2]]
        unknown = view.eligible(view.rounds()[2], on_public_roll)
        assert [each.index for each in unknown] == ([0, 2] if public else [0, 1, 2])
    view.close()


def test_an_account_that_is_client_and_member_may_be_paid_twice(player, chain, tmp_path):
    """Nothing forbids it, and no daemon may stumble over it."""
    job_id = player.create_real_job()
    both = player.members[0]
    player.join(job_id, player.members)
    player.enrol(job_id, [both, *player.clients[:2]])
    round_id = player.open_round(job_id)
    roll = player.roll(round_id, [0, 1])
    player.commit_roll(round_id, roll)
    player.publish_beacon(round_id, roll)
    player.attest(round_id, [0, 1], player.members[:2])
    player.claim(both, [round_id], [[0, 1]])
    player.claim_service(both, [round_id])
    view = ChainView(Job.find(chain.rpc, player.deployment, job_id), tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, player.deployment.block, 0) as cursor:
        cursor.catch_up()
        assert view.claims(both.address) == {0: PAY.client + PAY.member}
    view.close()


def test_a_round_that_is_opened_again_starts_from_nothing(player, chain, tmp_path):
    """Everything of a round goes with its block, and the next opening is another one."""
    job_id = player.create_real_job()
    player.join(job_id, player.members)
    player.enrol(job_id, player.clients[:3])
    player.mine_past(player.contracts.jobs.participants(job_id).enrol_deadline)
    chain.mine(1)
    view = ChainView(Job.find(chain.rpc, player.deployment, job_id), tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, player.deployment.block, 0) as cursor:
        round_id = player.open_round(job_id)
        roll = player.roll_with(job_id, round_id, [0, 1, 2], audited=[1])
        player.commit_roll(round_id, roll)
        player.publish_beacon(round_id, roll)
        player.attest(round_id, [0, 2], player.members[:2])
        player.hold(round_id, roll, [0, 2], 1)
        cursor.catch_up()
        before = view.latest_round()
        assert before.verdict_hash and before.seed and view.undecided()
        assert view.client_status(player.clients[1].address) is ClientStatus.SUSPENDED
        opened = player.reopened(job_id, chain, chain.rpc.block_number() - before.opened_at + 1)
        cursor.catch_up()
        after = view.latest_round()
        assert after.id == before.id and after.opening == opened.opening != before.opening
        assert after.name != before.name
        assert (after.roll, after.seed, after.verdict_hash) == (None, None, None)
        assert view.attestations(round_id) == {} and view.charges() == []
        assert view.decided_passes(after) is None
        assert len(view.eligible(after, on_public_roll)) == 3
    view.close()
