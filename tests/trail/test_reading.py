"""Reading one job from a chain with other activity."""

import pytest

from opfl_chain.chain.bindings.events import (
    ClientEnrolled,
    CreditWithdrawn,
    JobCreated,
    KeyRegistered,
    RoundOpened,
)
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
    members = set(trail.final_state.terms.members)
    assert {entry.event.member for entry in trail.of(KeyRegistered)} == members
    taken = {entry.event.account for entry in trail.of(CreditWithdrawn)}
    assert taken == {trail.final_state.terms.members[0], trail.final_state.terms.treasury}


def test_another_job_of_the_same_members_stays_out(played, trail):
    rehearsal = played.rehearsal
    other, _ = rehearsal.create_job(audit_rate=1.0, rounds=1)
    rehearsal.join(other)
    rehearsal.enrol(other)
    again = read_trail(played.chain.rpc, rehearsal.deployment, played.job)
    assert again.entries == trail.entries
    assert again.final_state.job_count == 2
    assert check_trail(again).holds

    young = read_trail(played.chain.rpc, rehearsal.deployment, other)
    assert [entry.event.job for entry in young.of(JobCreated)] == [other]
    assert len(list(young.of(ClientEnrolled))) == len(rehearsal.clients)
    assert not list(young.of(RoundOpened))
    report = check_trail(young)
    assert report.holds, report.first_failure


def test_events_that_no_check_is_about_appear_all_the_same(played, tmp_path):
    rehearsal = played.rehearsal
    job, _ = rehearsal.create_job(audit_rate=1.0, rounds=1)
    rehearsal.join(job)
    member = rehearsal.members[1]
    url = '"><script>alert(1)</script>'
    rehearsal.send(member, rehearsal.contracts.jobs.announce_endpoint(job, url))
    found = read_trail(played.chain.rpc, rehearsal.deployment, job)
    (announced,) = [entry for entry in found.entries if entry.name == "EndpointAnnounced"]
    assert announced.who == member.address
    assert check_trail(found).holds
    write_export(found, tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_job_that_does_not_exist_is_refused_with_those_that_do(played):
    with pytest.raises(NoSuchJob, match=r"job 99 is not in the contract .* holds jobs 1 to \d"):
        read_trail(played.chain.rpc, played.rehearsal.deployment, 99)


def test_round_that_is_still_going_on_holds(played):
    rehearsal = played.rehearsal
    job, _ = rehearsal.create_job(audit_rate=0.5, rounds=2)
    rehearsal.join(job)
    rehearsal.enrol(job)
    round_id, _ = rehearsal.open_round(job)
    rehearsal.commit(round_id, rehearsal.clients[:3])
    report = check_trail(read_trail(played.chain.rpc, rehearsal.deployment, job))
    assert report.holds, report.first_failure
    rehearsal.publish_partials(round_id, (1,))
    report = check_trail(read_trail(played.chain.rpc, rehearsal.deployment, job))
    assert report.holds, report.first_failure
