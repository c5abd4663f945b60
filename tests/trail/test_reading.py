"""What belongs to a job, read from a chain on which more happens."""

import pytest

from opfl_chain.chain.bindings.events import (
    ClientEnrolled,
    CreditWithdrawn,
    JobCreated,
    KeyRegistered,
    RoundOpened,
)
from opfl_chain.trail import check_trail, read_trail, write_export
from opfl_chain.trail.errors import NoSuchJob


def test_events_are_in_the_order_of_the_chain_and_complete(played, trail):
    assert list(trail.entries) == sorted(trail.entries, key=lambda entry: entry.place)
    deposits = trail.contracts["Deposits"]
    logs = played.chain.rpc.request(
        "eth_getLogs", {"fromBlock": "0x0", "toBlock": hex(trail.block), "address": deposits}
    )
    assert len([e for e in trail.entries if e.contract == "Deposits"]) == len(logs)


def test_events_of_accounts_are_those_of_members_and_treasury(trail):
    members = set(trail.standing.terms.members)
    assert {entry.event.member for entry in trail.of(KeyRegistered)} == members
    taken = {entry.event.account for entry in trail.of(CreditWithdrawn)}
    assert taken == {trail.standing.terms.members[0], trail.standing.terms.treasury}


def test_another_job_of_the_same_members_stays_out(played, trail):
    stage = played.stage
    other, _ = stage.create_job(audit_rate=1.0, rounds=1)
    stage.join(other)
    stage.enrol(other)
    again = read_trail(played.chain.rpc, stage.deployment, played.job)
    assert again.entries == trail.entries
    assert again.standing.job_count == 2
    assert check_trail(again).holds

    young = read_trail(played.chain.rpc, stage.deployment, other)
    assert [entry.event.job for entry in young.of(JobCreated)] == [other]
    assert len(list(young.of(ClientEnrolled))) == len(stage.clients)
    assert not list(young.of(RoundOpened))
    report = check_trail(young)
    assert report.holds, report.first_failure


def test_events_that_no_check_is_about_appear_all_the_same(played, tmp_path):
    stage = played.stage
    job, _ = stage.create_job(audit_rate=1.0, rounds=1)
    stage.join(job)
    member = stage.members[1]
    url = '"><script>alert(1)</script>'
    stage.send(member, stage.contracts.jobs.announce_endpoint(job, url))
    found = read_trail(played.chain.rpc, stage.deployment, job)
    (announced,) = [entry for entry in found.entries if entry.name == "EndpointAnnounced"]
    assert announced.who == member.address
    assert check_trail(found).holds
    write_export(found, tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_job_that_does_not_exist_is_refused_with_those_that_do(played):
    with pytest.raises(NoSuchJob, match=r"job 99 is not in the contract .* holds jobs 1 to \d"):
        read_trail(played.chain.rpc, played.stage.deployment, 99)


def test_round_that_is_still_going_on_holds(played):
    stage = played.stage
    job, _ = stage.create_job(audit_rate=0.5, rounds=2)
    stage.join(job)
    stage.enrol(job)
    round_id, _ = stage.open_round(job)
    stage.commit(round_id, stage.clients[:3])
    report = check_trail(read_trail(played.chain.rpc, stage.deployment, job))
    assert report.holds, report.first_failure
    stage.publish_partials(round_id, (1,))
    report = check_trail(read_trail(played.chain.rpc, stage.deployment, job))
    assert report.holds, report.first_failure
