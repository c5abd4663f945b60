"""Changes one fact of a round: the responsible check reports it first."""

from dataclasses import replace

import pytest
from tampered_trails import (
    assert_named,
    changed,
    entries_of,
    first_failure,
    moved,
    one,
    swapped,
    with_final_state,
    without,
)

from opfl_chain.chain.bindings.events import (
    BatchCommitted,
    BeaconPublished,
    ClientEnrolled,
    DatasetRootReplaced,
    GradientCommitted,
    GroupFormed,
    JobClosed,
    JobCreated,
    KeyRegistered,
    MemberJoined,
    PartialPublished,
    RoundFinalised,
    RoundOpened,
    RoundVoided,
    SlashExecuted,
    SlashRequested,
    SlashVetoed,
    VerdictAttested,
    VerdictDecided,
    Withdrawn,
)
from opfl_chain.chain.bindings.types import Verdict
from opfl_chain.protocol.randomness import is_audited
from opfl_chain.protocol.verdict import verdict_hash
from opfl_chain.trail import check_trail
from opfl_chain.trail.verification import CHECKS

OTHER = bytes(31) + b"\x01"


def test_untouched_trail_holds_and_every_check_has_facts(trail):
    report = check_trail(trail)
    assert report.holds, report.first_failure
    assert report.first_failure is None
    assert list(report.facts) == list(CHECKS)
    assert all(report.facts.values())


# --- order and schedule


def test_two_events_that_changed_places(trail):
    a, b = entries_of(trail, GradientCommitted, 0)[:2]
    turned = swapped(swapped(trail, a, replace(b)), b, replace(a))
    assert_named(turned, "order of events", "comes after GradientCommitted", round_=0)


def test_round_that_nobody_ended(trail):
    assert_named(
        without(trail, one(trail, RoundFinalised, 0)),
        "order of events",
        "opens when round 0 is over",
        round_=1,
    )


def test_round_that_nobody_opened(trail):
    opened = one(trail, RoundOpened, 3)
    assert_named(without(trail, opened), "order of events", "a round that was opened", round_=3)


def test_void_round_that_hides_its_verdict(trail):
    voided = one(trail, RoundVoided, 4)
    failure = assert_named(
        changed(trail, voided, decided=False), "order of events", "whether it was decided", round_=4
    )
    assert (failure.finding.expected, failure.finding.found) == (True, False)


def test_job_that_is_never_closed(trail):
    assert_named(
        without(trail, one(trail, JobClosed)), "order of events", "closed by its last", round_=4
    )


def test_first_round_without_a_member(trail):
    joined = entries_of(trail, MemberJoined)[1]
    assert_named(without(trail, joined), "order of events", "all members joined", round_=0)


def test_second_creation(trail):
    created, opened = one(trail, JobCreated), one(trail, RoundOpened, 0)
    again = replace(created, block=opened.block, log_index=opened.log_index)
    failure = first_failure(swapped(trail, opened, again))
    assert (failure.check, "one creation" in failure.finding.fact) == ("order of events", True)


def test_trail_without_a_creation(trail):
    assert_named(without(trail, one(trail, JobCreated)), "order of events", "job was created")


def test_opening_that_gives_more_time(trail):
    opened = one(trail, RoundOpened, 2)
    longer = changed(trail, opened, commit_deadline=opened.event.commit_deadline + 1)
    assert_named(longer, "schedule", "last block of the commit phase", round_=2)


@pytest.mark.parametrize(
    ("kind", "round_", "blocks"),
    [
        (ClientEnrolled, None, 301),
        (BeaconPublished, 0, 60),
        (BeaconPublished, 0, -200),
        (VerdictAttested, 3, 60),
        (SlashRequested, 4, 150),
        (RoundVoided, 3, -5),
    ],
)
def test_event_outside_its_phase(trail, kind, round_, blocks):
    entry = entries_of(trail, kind, round_)[-1]
    block = entry.block + blocks
    report = check_trail(moved(trail, entry, block))
    named = [f for f in report.failures if f.finding.fact == f"{kind.__name__} is in its phase"]
    assert [f.check for f in named] == ["schedule"]
    assert named[0].finding.found == f"block {block}"


def test_data_set_replaced_after_the_first_round(trail):
    replaced, opened = one(trail, DatasetRootReplaced), one(trail, RoundOpened, 0)
    late = swapped(trail, opened, replace(replaced, block=opened.block))
    late = swapped(late, replaced, replace(opened, block=replaced.block))
    facts = [f.finding.fact for f in check_trail(late).failures if f.check == "schedule"]
    assert "data sets are fixed by the first round" in facts


def test_veto_window_that_ends_early(trail):
    entry = entries_of(trail, SlashRequested, 1)[0]
    early = changed(trail, entry, executable_at=entry.event.executable_at - 1)
    assert_named(early, "schedule", "end of the veto window", round_=1, who=entry.event.client)


def test_execution_inside_the_veto_window(trail):
    executed = entries_of(trail, SlashExecuted, 2)[0]
    requested = one(trail, SlashRequested, 2, client=executed.event.client)
    early = replace(executed, block=requested.block + 10)
    report = check_trail(swapped(trail, executed, early))
    assert "schedule" in [
        f.check for f in report.failures if f.finding.fact == "SlashExecuted is in its phase"
    ]


def test_veto_after_its_window(trail):
    vetoed = one(trail, SlashVetoed, 1)
    late = replace(vetoed, block=vetoed.block + 30)
    report = check_trail(swapped(trail, vetoed, late))
    assert "schedule" in [
        f.check for f in report.failures if f.finding.fact == "SlashVetoed is in its phase"
    ]


def test_withdrawal_before_the_delay_is_over(trail):
    withdrawn = entries_of(trail, Withdrawn)[0]
    early = swapped(trail, withdrawn, replace(withdrawn, block=withdrawn.block - 10))
    facts = [f.finding.fact for f in check_trail(early).failures if f.check == "schedule"]
    assert facts == ["Withdrawn is in its phase"]


# --- before the first round


@pytest.mark.parametrize("document", ["policy", "boundary"])
def test_another_document(trail, document):
    created = one(trail, JobCreated)
    other = getattr(created.event, document) + b" "
    assert_named(
        changed(trail, created, **{document: other}),
        "terms and documents",
        f"hash of the {document}",
    )


def test_terms_that_the_contract_does_not_have(trail):
    terms = replace(trail.final_state.terms, unbonding_delay=1)
    assert_named(with_final_state(trail, terms=terms), "terms and documents", "terms of the job")


def test_client_with_the_index_of_another(trail):
    entry = entries_of(trail, ClientEnrolled)[3]
    failure = assert_named(
        changed(trail, entry, index=5), "enrolment", "index of the client", who=entry.event.client
    )
    assert (failure.finding.expected, failure.finding.found) == (3, 5)


def test_client_without_a_data_set(trail):
    entry = entries_of(trail, ClientEnrolled)[0]
    assert_named(changed(trail, entry, root=bytes(32)), "enrolment", "root of the data set")


def test_replaced_data_set_that_the_node_conceals(trail):
    entry = one(trail, DatasetRootReplaced)
    concealed = without(trail, entry)
    assert_named(concealed, "enrolment", "root of the data set", who=entry.event.client)


def test_member_at_the_place_of_another(trail):
    entry = entries_of(trail, MemberJoined)[0]
    assert_named(changed(trail, entry, index=2), "enrolment", "place of the member")


def test_key_of_another(trail):
    first, second = entries_of(trail, KeyRegistered)[:2]
    other = changed(trail, first, public_key=second.event.public_key)
    report = check_trail(other)
    assert "group key" in {failure.check for failure in report.failures}
    # The proof of possession, sent with the key, is not for this one either, and comes earlier.
    assert report.first_failure.check == "signed statements"


def test_group_key_that_is_not_the_sum(trail):
    formed, key = one(trail, GroupFormed), entries_of(trail, KeyRegistered)[0]
    other = changed(trail, formed, group_key=key.event.public_key)
    assert_named(other, "group key", "sum of the members' keys")


# --- commitments and beacon


def test_commitment_of_a_stranger(trail):
    entry = entries_of(trail, GradientCommitted, 0)[2]
    treasury = trail.final_state.terms.treasury
    assert_named(
        changed(trail, entry, client=treasury),
        "commitments",
        "status of the client",
        round_=0,
        who=treasury,
    )


def test_client_that_commits_twice(trail):
    first, second = entries_of(trail, GradientCommitted, 0)[:2]
    twice = changed(trail, second, client=first.event.client)
    assert_named(twice, "commitments", "committed before in this round", round_=0)


def test_commitment_of_a_suspended_client(trail):
    """Client 3 lost its whole deposit in round 2."""
    suspended = one(trail, ClientEnrolled, index=3).event.client
    entry = entries_of(trail, GradientCommitted, 3)[0]
    assert_named(
        changed(trail, entry, client=suspended),
        "commitments",
        "status of the client",
        round_=3,
        who=suspended,
    )


@pytest.mark.parametrize("round_", range(5))
def test_another_commitment(trail, round_):
    entry = entries_of(trail, GradientCommitted, round_)[0]
    other = changed(trail, entry, commitment=OTHER)
    assert_named(other, "accumulator", "accumulator of the commitments", round_=round_)
    failing = {f.check for f in check_trail(other).failures}
    assert failing == {"accumulator", "beacon"}


@pytest.mark.parametrize("change", [{"root": OTHER}, {"count": 99}])
def test_another_batch(trail, change):
    entry = one(trail, BatchCommitted, 1)
    assert_named(changed(trail, entry, **change), "accumulator", "accumulator", round_=1)


def test_commitments_in_another_order(trail):
    """Swap the contents of two events; each keeps its place in the chain."""
    a, b = entries_of(trail, GradientCommitted, 0)[:2]
    turned = swapped(trail, a, replace(a, event=b.event))
    turned = swapped(turned, b, replace(b, event=a.event))
    assert_named(turned, "accumulator", "accumulator of the commitments", round_=0)


def test_accumulator_that_the_contract_does_not_have(trail):
    wrong = {**trail.final_state.accumulators, 3: bytes(28)}
    assert_named(
        with_final_state(trail, accumulators=wrong), "accumulator", "accumulator", round_=3
    )


def test_another_seed(trail):
    entry = one(trail, BeaconPublished, 0)
    assert_named(changed(trail, entry, seed=OTHER), "beacon", "seed of the signature", round_=0)


def test_beacon_of_another_round(trail):
    first, other = one(trail, BeaconPublished, 0), one(trail, BeaconPublished, 3)
    taken = changed(trail, first, signature=other.event.signature, seed=other.event.seed)
    assert_named(taken, "beacon", "by the group key", round_=0)


def test_beacon_that_is_no_point(trail):
    entry = one(trail, BeaconPublished, 0)
    assert_named(changed(trail, entry, signature=bytes(128)), "beacon", "group key", round_=0)


def test_partial_signature_of_another_member(trail):
    a, b = entries_of(trail, PartialPublished, 2)
    taken = changed(trail, a, signature=b.event.signature)
    assert_named(taken, "beacon", "by the member", round_=2, who=a.event.member)


def test_partial_signature_that_the_node_conceals(trail):
    last = entries_of(trail, PartialPublished, 2)[1]
    assert_named(without(trail, last), "beacon", "members that withheld", round_=2)


def test_parts_that_do_not_sum_up(trail):
    beacon, other = one(trail, BeaconPublished, 1), one(trail, BeaconPublished, 0)
    wrong = changed(trail, beacon, signature=other.event.signature, seed=other.event.seed)
    assert_named(wrong, "beacon", "sum of all parts", round_=1)


def test_seed_that_the_contract_does_not_have(trail):
    wrong = {**trail.final_state.seeds, 0: OTHER}
    assert_named(with_final_state(trail, seeds=wrong), "beacon", "seed of the round", round_=0)


# --- verdicts


def test_attestation_of_another_verdict(trail):
    entry = entries_of(trail, VerdictAttested, 0)[1]
    other = changed(trail, entry, verdict=Verdict(b"\x01", b""))
    failure = assert_named(other, "verdicts", "decided by two equal attestations", round_=0)
    assert "2 equal" in failure.finding.expected


def test_attestation_by_a_stranger(trail):
    entry = entries_of(trail, VerdictAttested, 0)[0]
    other = changed(trail, entry, member=trail.final_state.terms.treasury)
    assert_named(other, "verdicts", "a member of the job attests", round_=0)


def test_member_that_attests_twice(trail):
    first, second = entries_of(trail, VerdictAttested, 0)[:2]
    twice = changed(trail, second, member=first.event.member)
    assert_named(twice, "verdicts", "a member attests once", round_=0)


def test_decision_that_nobody_attested(trail):
    entry = one(trail, VerdictDecided, 0)
    assert_named(
        changed(trail, entry, verdict_hash=OTHER), "verdicts", "second equal attestation", round_=0
    )


def judged_anew(trail, round_, passes, faults):
    """The trail with another verdict, attested by those who attested the decided one."""
    decided = one(trail, VerdictDecided, round_)
    before = decided.event.verdict_hash
    for entry in entries_of(trail, VerdictAttested, round_):
        verdict = entry.event.verdict
        if verdict_hash(verdict.passes, verdict.faults) == before:
            trail = changed(trail, entry, verdict=Verdict(passes, faults))
    return changed(trail, decided, verdict_hash=verdict_hash(passes, faults))


def test_verdict_about_a_client_that_did_not_commit(trail):
    """Client 6 was not in round 4."""
    anew = judged_anew(trail, 4, bytes([0b1000001]), bytes([0, 0, 0, 1, 1]))
    client = one(trail, ClientEnrolled, index=6).event.client
    assert_named(anew, "audited set", "a judged client committed", round_=4, who=client)


def test_verdict_about_more_clients_than_the_batch_has(trail):
    """Clients 6 and 7 were not in round 2, whose batch has one commitment."""
    faults = b"".join(bytes([0, 0, 0, i, 4]) for i in (3, 4, 5))
    anew = judged_anew(trail, 2, bytes([0b11000011]), faults)
    assert_named(anew, "audited set", "a judged client committed", round_=2)


def test_verdict_about_nobody(trail):
    anew = judged_anew(trail, 0, b"\xff\x01", b"")
    assert_named(anew, "audited set", "judged client index", round_=0)


def test_replay_of_a_client_that_was_not_audited(trail):
    seed, rate = trail.final_state.seeds[0], trail.final_state.terms.audit_rate
    spared = [
        e.event
        for e in entries_of(trail, ClientEnrolled)
        if not is_audited(seed, e.event.client, rate)
    ]
    assert 0 < len(spared) < 8
    index = spared[0].index
    anew = judged_anew(trail, 0, bytes([0xFF & ~(1 << index)]), bytes([0, 0, 0, index, 4]))
    assert_named(
        anew,
        "audited set",
        "at fault for replay_outside is audited",
        round_=0,
        who=spared[0].client,
    )


def test_attestation_that_the_node_conceals(trail):
    """The third one, after the decision, which nothing else follows from."""
    last = entries_of(trail, VerdictAttested, 0)[2]
    assert_named(without(trail, last), "verdicts", "hashes that members attested", round_=0)


def test_decision_that_is_no_verdict(trail):
    anew = judged_anew(trail, 0, b"\xff", b"\x00")
    assert_named(anew, "verdicts", "what is decided is a verdict", round_=0)


# --- models


def test_round_on_another_model(trail):
    entry = one(trail, RoundOpened, 2)
    assert_named(changed(trail, entry, model_hash=OTHER), "model hashes", "opens on", round_=2)


def test_model_that_a_void_round_does_not_keep(trail):
    """The round after the void one must open on the model of the one before it."""
    final = one(trail, RoundFinalised, 2)
    other = changed(trail, final, model_hash=OTHER)
    report = check_trail(other)
    rounds = [f.finding.round for f in report.failures if f.check == "model hashes"]
    assert rounds == [3, 4, None]


def test_model_that_the_contract_does_not_have(trail):
    progress = replace(trail.final_state.progress, model_hash=OTHER)
    assert_named(with_final_state(trail, progress=progress), "model hashes", "current model")
