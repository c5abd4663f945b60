"""Reading one job from a chain with other activity."""

from dataclasses import replace

import pytest
from tampered_trails import assert_named, changed, entries_of, moved, one, swapped

from opfl_chain.chain.bindings.events import (
    AuditUnlocked,
    ClientEnrolled,
    CreditWithdrawn,
    JobCreated,
    KeyRegistered,
    Refunded,
    RoundOpened,
    VerdictAttested,
    VerdictDecided,
)
from opfl_chain.chain.bindings.types import Outcome, Role
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.trail import check_trail, read_trail, write_export
from opfl_chain.trail.report import NoSuchJob


def test_events_are_in_the_order_of_the_chain_and_complete(played, trail):
    assert list(trail.entries) == sorted(trail.entries, key=lambda entry: entry.place)
    deposits = trail.contracts["Deposits"]
    logs = played.chain.rpc.request(
        "eth_getLogs", {"fromBlock": "0x0", "toBlock": hex(trail.block), "address": deposits}
    )
    assert len([e for e in trail.entries if e.contract == "Deposits"]) == len(logs)


def test_events_of_accounts_are_those_of_members_and_treasury(trail):
    terms = trail.final_state.terms
    roster = {*terms.members, *terms.standbys}
    assert {entry.event.member for entry in trail.of(KeyRegistered)} == roster
    taken = {entry.event.account for entry in trail.of(CreditWithdrawn)}
    assert taken == {trail.final_state.terms.members[0], trail.final_state.terms.treasury}


def test_another_job_of_the_same_members_stays_out(played, trail):
    player = played.player
    other = player.create_job(audit_rate=1.0)
    player.join(other, player.roster)
    player.enrol(other)
    again = read_trail(played.chain.rpc, player.deployment, played.job)
    assert again.entries == trail.entries
    assert again.final_state.job_count == 2
    assert check_trail(again).holds

    young = read_trail(played.chain.rpc, player.deployment, other)
    assert [entry.event.job for entry in young.of(JobCreated)] == [other]
    assert len(list(young.of(ClientEnrolled))) == len(player.clients)
    assert not list(young.of(RoundOpened))
    report = check_trail(young)
    assert report.holds, report.first_failure


def test_events_that_no_check_is_about_appear_all_the_same(played, tmp_path):
    player = played.player
    job = player.create_job(audit_rate=1.0)
    player.join(job, player.members)
    member = player.members[1]
    url = '"><script>alert(1)</script>'
    player.send(member, player.contracts.jobs.announce_endpoint(job, url))
    found = read_trail(played.chain.rpc, player.deployment, job)
    (announced,) = [entry for entry in found.entries if entry.name == "EndpointAnnounced"]
    assert announced.who == member.address
    assert check_trail(found).holds
    write_export(found, tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_job_that_does_not_exist_is_refused_with_those_that_do(played):
    with pytest.raises(NoSuchJob, match=r"job 99 is not in the contract .* holds jobs 1 to \d"):
        read_trail(played.chain.rpc, played.player.deployment, 99)


def checked(played, job):
    trail = read_trail(played.chain.rpc, played.player.deployment, job)
    report = check_trail(trail)
    assert report.holds, report.first_failure
    return trail, report


def test_round_that_is_still_going_on_holds(played):
    player = played.player
    job = player.create_job(rounds=2)
    player.join(job, player.members)
    player.enrol(job)
    round_id = player.open_round(job)
    checked(played, job)
    roll = player.roll(round_id, (0, 1, 2))
    player.commit_roll(round_id, roll)
    checked(played, job)
    player.publish_partials(round_id, roll, player.members[1:2])
    checked(played, job)


def test_job_that_never_started_is_refunded_and_left(played):
    """Nobody enrolled: the creator gets the whole budget, and members their stakes."""
    player = played.player
    job = player.create_job()
    player.join(job, player.members[:1])
    player.mine_past(player.contracts.jobs.participants(job).enrol_deadline)
    player.refund(job)
    player.leave(job, player.members[:1], Role.MEMBER)
    trail, report = checked(played, job)
    assert report.notes == ()
    early = moved(trail, one(trail, Refunded), one(trail, JobCreated).block + 2)
    assert_named(early, "rewards", "the job is over")


def failed_audit(player, *, public_roll):
    """Play a round without a standby in which an audit fails, and return its identifier."""
    # Another treasury: its credit is no business of the played job.
    job = player.create_job(
        audit_rate=1.0,
        standbys=False,
        public_roll=public_roll,
        treasury=player.operator.address,
    )
    player.join(job, player.members)
    player.enrol(job, player.clients[:4])
    round_id = player.open_round(job)
    roll = player.roll(round_id, (0, 1, 2, 3))
    player.commit_roll(round_id, roll, public=public_roll)
    player.publish_beacon(round_id, roll)
    player.attest(round_id, (0, 1, 2), player.members)
    player.finalise(round_id)
    return job, round_id, roll


def test_deposit_is_unlocked_after_its_delay_in_a_job_without_a_standby(played):
    player = played.player
    job, round_id, roll = failed_audit(player, public_roll=True)
    receipt = player.hold(round_id, roll, (0, 1, 2), 3)
    _, report = checked(played, job)
    assert report.notes[-1].endswith("is held and undecided")
    player.mine_past(receipt.block_number + player.contracts.jobs.terms(job).unlock_delay)
    client = player.clients[3].address
    player.send(player.operator, player.contracts.charges.unlock(round_id, client))
    trail, report = checked(played, job)
    assert not report.notes[-1].endswith("undecided")
    unlocked = one(trail, AuditUnlocked)
    early = swapped(trail, unlocked, replace(unlocked, block=receipt.block_number + 1))
    facts = [f.finding.fact for f in check_trail(early).failures if f.check == "schedule"]
    assert facts == ["AuditUnlocked is in its phase"]


def test_roll_that_is_not_public_is_checked_as_far_as_the_chain_shows(played, tmp_path):
    player = played.player
    job, round_id, roll = failed_audit(player, public_roll=False)
    player.hold(round_id, roll, (0, 1, 2), 3)
    player.charge(round_id, 3, Outcome.OUTSIDE)
    trail, report = checked(played, job)
    assert report.notes[0].startswith("the rolls of this job are not public")
    write_export(trail, tmp_path)
    assert "not public" in (tmp_path / "round-0000.html").read_text()
    # Client 7 did not enrol.
    decided = one(trail, VerdictDecided)
    strange = changed(trail, decided, passed=4, verdict_hash=keccak256(b"\x87"))
    for entry in entries_of(trail, VerdictAttested):
        strange = changed(strange, entry, passes=b"\x87")
    assert_named(strange, "passes", "index of a client that passed", round_=0)
