"""The view of a daemon equals the contracts' state, also after a reorganisation."""

from dataclasses import replace

import pytest
from roles_support import DaemonRehearsal, Maker

from opfl_chain.chain.bindings.types import (
    ClientStatus,
    MemberFault,
    Role,
    RoundStatus,
    SlashStatus,
)
from opfl_chain.mpc.audit.judge import Rules
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.protocol.identifiers import ClientIndex, JobId
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.roles.job import Job
from opfl_chain.roles.settings import JobUnusable
from opfl_chain.roles.view.view import ChainView

URLS = [f"https://member-{i}.example" for i in range(3)]


@pytest.fixture(scope="module")
def expected():
    replays = Replays(DaemonRehearsal.policy)
    return Rules(DaemonRehearsal.policy, DaemonRehearsal.boundary, replays).expected(0)


@pytest.fixture(scope="module")
def played(rehearsal, chain, expected, tmp_path_factory):
    """A final round, one with a slash, a dissenter and a batch, a void one; then all leave."""
    other = rehearsal.create_real_job()
    job_id = rehearsal.create_real_job(rounds=3)
    makers = [Maker(client, expected) for client in rehearsal.clients[:6]]
    rehearsal.join(job_id)
    rehearsal.enrol_makers(other, makers[:1])  # of another job, which must be ignored
    rehearsal.enrol_makers(job_id, makers)
    jobs = rehearsal.contracts.jobs
    for url, member in zip(URLS, rehearsal.members, strict=True):
        rehearsal.send(member, jobs.announce_endpoint(job_id, "http://before"))
        rehearsal.send(member, jobs.announce_endpoint(job_id, url))
    rehearsal.send(rehearsal.clients[5], jobs.replace_dataset_root(job_id, b"\7" * 32))

    first, _ = rehearsal.open_round(job_id)
    rehearsal.commit_makers(first, makers)
    rehearsal.publish_beacon(first)
    everybody = Verdict.of({ClientIndex(i) for i in range(6)}, {})
    rehearsal.attest(first, everybody, (0, 1, 2))
    rehearsal.finalise(first, b"\1" * 32, b"\2" * 32)

    second, _ = rehearsal.open_round(job_id)
    rehearsal.commit_makers(second, makers[:3])
    rehearsal.commit_batch(second, rehearsal.clients[3:6])
    rehearsal.publish_partials(second, (0, 1))
    rehearsal.mine_past(jobs.schedule(second).beacon)
    faulty = Verdict.of(
        {ClientIndex(0), ClientIndex(1)}, {ClientIndex(2): FaultReason.COMMITMENT_MISMATCH}
    )
    rehearsal.attest(second, faulty, (0, 1))
    rehearsal.attest(second, everybody, (2,))
    rehearsal.penalise(second, rehearsal.members[2], MemberFault.VERDICT_DISSENT)
    rehearsal.request_slash(second, rehearsal.clients[2], faulty, 0)
    rehearsal.execute_slash(second, rehearsal.clients[2])
    rehearsal.finalise(second, b"\3" * 32, b"\4" * 32)

    third, _ = rehearsal.open_round(job_id)
    rehearsal.send(rehearsal.clients[4], jobs.unbond_deposit(job_id))
    rehearsal.mine_past(jobs.schedule(third).attest + 1)
    rehearsal.send(rehearsal.operator, jobs.void_round(third))
    rehearsal.send(rehearsal.members[0], jobs.unbond_stake(job_id))
    job = Job.find(chain.rpc, rehearsal.deployment, job_id)
    return job, [first, second, third]


@pytest.fixture
def view(played, rehearsal, chain, tmp_path):
    job, _ = played
    view = ChainView(job, tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, rehearsal.deployment.block, 0) as cursor:
        view.cursor_under_test = cursor
        cursor.catch_up()
        yield view
    view.close()


def test_a_job_is_read_from_the_chain_alone(played, rehearsal):
    job, _ = played
    assert job.policy == rehearsal.policy and job.boundary == rehearsal.boundary
    assert job.terms == rehearsal.contracts.jobs.terms(job.id)
    assert job.enrolment_end == rehearsal.contracts.jobs.progress(job.id).enrol_deadline


def test_a_job_that_is_not_there_is_said_to_be_none(rehearsal, chain):
    with pytest.raises(JobUnusable, match=r"job 77 does not exist at .* have 2 jobs"):
        Job.find(chain.rpc, rehearsal.deployment, JobId(77))


def test_rounds_are_what_the_contracts_say(view, played, rehearsal):
    jobs, beacon = rehearsal.contracts.jobs, rehearsal.contracts.beacon
    _, ids = played
    assert [each.id for each in view.rounds()] == ids
    statuses = {RoundStatus.FINALISED: "finalised", RoundStatus.VOID: "void"}
    for each in view.rounds():
        stated = jobs.round(each.id)
        assert each.schedule == jobs.schedule(each.id)
        assert (each.verdict_hash or bytes(32)) == stated.verdict_hash
        assert (each.decided_at or 0) == stated.decided_at
        assert each.over == statuses[stated.status]
        assert (each.seed or bytes(32)) == beacon.seed_of(each.id)
        for client in view.clients():
            assert view.is_audited(each, client) == beacon.is_audited(each.id, client)
            direct = view.direct_commitment(each.id, client) is not None
            assert direct == jobs.committed_directly(each.id, client)
    assert view.is_closed and jobs.progress(played[0].id).closed
    assert view.latest_round().id == ids[-1]
    assert [each.id for each in view.finalised_rounds()] == ids[:2]
    assert [each.next_model_hash for each in view.finalised_rounds()] == [b"\2" * 32, b"\4" * 32]
    assert jobs.progress(played[0].id).model_hash == b"\4" * 32


def test_batches_and_what_was_committed_directly_are_counted_together(view, played):
    _, (first, second, third) = played
    assert view.batch(second)[1] == 3 and view.batch(first) is None
    assert [view.count_commitments(each) for each in (first, second, third)] == [6, 6, 0]
    assert list(view.direct_commitments(second)) == list(view.clients())[:3]


def test_parties_are_what_the_contracts_say(view, played, rehearsal):
    job, _ = played
    jobs, deposits = rehearsal.contracts.jobs, rehearsal.contracts.deposits
    assert len(view.clients()) == 6
    for address, client in view.clients().items():
        stated = jobs.client(job.id, address)
        assert (client.index, client.root) == (stated.index, stated.dataset_root)
        assert view.client(address) == client
        assert view.client_status(address) is stated.status
        until = deposits.account(job.id, Role.CLIENT, address).withdrawable_at
        assert (view.unbonding(address, Role.CLIENT) or (0, False))[0] == until
    assert view.client_status(rehearsal.clients[2].address) is ClientStatus.SUSPENDED
    assert view.client_status(rehearsal.operator.address) is ClientStatus.UNKNOWN
    assert view.client(rehearsal.operator.address) is None
    for rank, member in enumerate(rehearsal.members):
        assert view.has_joined(member.address)
        assert view.public_key(member.address) == rehearsal.contracts.beacon.key_of(member.address)
        assert view.endpoints()[member.address] == URLS[rank]
        assert view.announcements(member.address) == 2
    assert view.unbonding(rehearsal.members[0].address, Role.MEMBER) is not None
    assert view.unbonding(rehearsal.members[1].address, Role.MEMBER) is None


def test_a_status_is_known_for_every_block(view, rehearsal, chain):
    leaver = rehearsal.clients[4].address
    blocks = [
        n
        for n in range(chain.rpc.block_number())
        if view.client_status(leaver, n) is not ClientStatus.ACTIVE
    ]
    assert view.client_status(leaver, blocks[0] - 1) is ClientStatus.ACTIVE
    assert view.client_status(leaver, blocks[0]) is ClientStatus.LEAVING


def test_slashes_and_penalties_are_what_the_contracts_say(view, played, rehearsal):
    _, (_, second, _) = played
    (slash,) = view.slashes()
    stated = rehearsal.contracts.slashing.slash_of(second, slash.client)
    assert (slash.status, slash.captured) == (SlashStatus.EXECUTED, stated.captured)
    assert (int(slash.reason), slash.executable_at) == (stated.reason, stated.executable_at)
    assert view.slash(1, slash.client) == slash and view.slash(0, slash.client) is None
    assert view.pending_slashes() == []
    for member in rehearsal.members:
        for fault in MemberFault:
            stated = rehearsal.contracts.slashing.is_penalised(second, member.address, fault)
            assert view.is_penalised(second, member.address, fault) == stated


def test_the_verdict_is_the_one_that_was_decided_not_the_dissenting_one(view, played):
    second = view.rounds()[1]
    verdict = view.decided_verdict(second)
    assert verdict.hash == second.verdict_hash and len(verdict.passed) == 2
    assert len(view.attestations(second.id)) == 3
    assert view.decided_verdict(view.rounds()[2]) is None


def test_partial_signatures_are_known(view, played, rehearsal):
    _, (first, second, _) = played
    assert view.published_partials(second) == {m.address for m in rehearsal.members[:2]}
    assert view.published_partials(first) == set()


def test_deadlines_are_those_of_the_contracts_to_the_block(view):
    round_ = view.rounds()[0]
    commit, beacon = round_.schedule.commit, round_.schedule.beacon
    assert round_.closed(commit) and not round_.closed(commit - 1)
    unsettled = replace(round_, seed=None)
    assert unsettled.settled(beacon) and not unsettled.settled(beacon - 1)


def test_rounds_are_found_by_when_they_closed(view):
    rounds = view.rounds()
    assert view.rounds_closing_since(rounds[1].schedule.commit) == rounds[1:]


def test_a_job_without_all_members_or_without_clients_cannot_start(rehearsal, chain, tmp_path):
    job_id = rehearsal.create_real_job()
    jobs = rehearsal.contracts.jobs
    rehearsal.send(rehearsal.members[0], jobs.join_committee(job_id, value=20 * 10**18))
    job = Job.find(chain.rpc, rehearsal.deployment, job_id)
    view = ChainView(job, tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, rehearsal.deployment.block, 0) as cursor:
        cursor.catch_up()
        assert not view.can_start
        assert view.is_stillborn(job.enrolment_end)
        assert not view.is_stillborn(job.enrolment_end - 1)
    view.close()


def test_reorganisation_is_undone_in_the_view(rehearsal, chain, played, tmp_path):
    """Two members attest, and both blocks go: the round is undecided again."""
    makers = [Maker(client, None) for client in rehearsal.clients[:2]]
    job_id = rehearsal.create_real_job()
    rehearsal.join(job_id)
    for maker in makers:
        rehearsal.send(
            maker.actor, rehearsal.contracts.jobs.enrol(job_id, b"\1" * 32, value=10 * 10**18)
        )
    round_id, _ = rehearsal.open_round(job_id)
    rehearsal.commit(round_id, rehearsal.clients[:2])
    rehearsal.publish_beacon(round_id)
    rehearsal.mine_past(rehearsal.contracts.jobs.schedule(round_id).deliver)
    chain.mine(1)
    view = ChainView(Job.find(chain.rpc, rehearsal.deployment, job_id), tmp_path / "chain.sqlite")
    with view.cursor(chain.rpc, rehearsal.deployment.block, 0) as cursor:
        cursor.catch_up()
        before = view.latest_round()
        verdict = Verdict.of({ClientIndex(0), ClientIndex(1)}, {})
        rehearsal.attest(round_id, verdict, (0, 1))
        cursor.catch_up()
        assert view.latest_round().verdict_hash == verdict.hash
        assert view.decided_verdict(view.latest_round()).hash == verdict.hash
        chain.reorg(2)
        cursor.catch_up()
        assert view.latest_round() == before and before.verdict_hash is None
        assert view.attestations(round_id) == {}
    view.close()
