"""Changes one fact of a round: the responsible check reports it first."""

from dataclasses import replace

import pytest
from played_job import FAULTY, HONEST, LAST, NO_ROLL, SPLIT, WITHHELD
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
    AuditHeld,
    BeaconPublished,
    ClientCharged,
    ClientEnrolled,
    DatasetRootReplaced,
    Funded,
    GroupFormed,
    JobClosed,
    JobCreated,
    KeyRegistered,
    MemberJoined,
    PartialPublished,
    RollCommitted,
    RoundFinalised,
    RoundOpened,
    RoundVoided,
    SeatChanged,
    VerdictAttested,
    VerdictDecided,
    Withdrawn,
)
from opfl_chain.chain.bindings.types import Outcome
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.trail import check_trail
from opfl_chain.trail.verification import CHECKS

OTHER = bytes(31) + b"\x01"


def test_untouched_trail_holds_and_every_check_has_facts(trail):
    report = check_trail(trail)
    assert report.holds, report.first_failure
    assert report.first_failure is None
    assert list(report.facts) == list(CHECKS)
    assert all(report.facts.values())


def test_limits_name_open_audits_and_what_the_chain_does_not_show(trail):
    report = check_trail(trail)
    (held,) = entries_of(trail, AuditHeld, LAST)
    assert [note.split(":")[0] for note in report.notes] == [
        "roots of rolls are not recomputed",
        f"round {LAST}",
    ]
    assert report.notes[-1].endswith(f"the audit of {held.event.client} is held and undecided")
    concealed = check_trail(without(trail, held)).notes[-1]
    assert concealed.endswith(f"the audit of {held.event.client} did not pass, and is not held yet")


# --- order and schedule


def test_two_events_that_changed_places(trail):
    a, b = entries_of(trail, VerdictAttested, HONEST)[:2]
    turned = swapped(swapped(trail, a, replace(b)), b, replace(a))
    assert_named(turned, "order of events", "comes after VerdictAttested", round_=HONEST)


def test_round_that_nobody_ended(trail):
    assert_named(
        without(trail, one(trail, RoundFinalised, 0)),
        "order of events",
        "opens when round 0 is over",
        round_=1,
    )


def test_round_that_nobody_opened(trail):
    opened = one(trail, RoundOpened, SPLIT)
    assert_named(without(trail, opened), "order of events", "a round that was opened", round_=SPLIT)


def test_void_round_that_hides_its_verdict(trail):
    voided = one(trail, RoundVoided, LAST)
    hidden = changed(trail, voided, decided=False)
    failure = assert_named(hidden, "order of events", "whether it was decided", round_=LAST)
    assert (failure.finding.expected, failure.finding.found) == (True, False)


def test_job_that_is_never_closed(trail):
    assert_named(
        without(trail, one(trail, JobClosed)), "order of events", "closed by its last", round_=LAST
    )


def test_first_round_without_a_member(trail):
    joined = entries_of(trail, MemberJoined)[1]
    assert_named(without(trail, joined), "order of events", "had not joined", round_=0)


def test_second_creation(trail):
    created, opened = one(trail, JobCreated), one(trail, RoundOpened, 0)
    again = replace(created, block=opened.block, log_index=opened.log_index)
    failure = first_failure(swapped(trail, opened, again))
    assert (failure.check, "one creation" in failure.finding.fact) == ("order of events", True)


def test_trail_without_a_creation(trail):
    assert_named(without(trail, one(trail, JobCreated)), "order of events", "job was created")


def test_attestation_before_the_roll(trail):
    roll = one(trail, RollCommitted, HONEST)
    attested = entries_of(trail, VerdictAttested, HONEST)[-1]
    late = replace(roll, block=attested.block + 1)
    failures = check_trail(swapped(trail, roll, late)).failures
    facts = [f.finding.fact for f in failures if f.check == "order of events"]
    assert "VerdictAttested comes after the roll" in facts
    assert "BeaconPublished comes after the roll" in facts


@pytest.mark.parametrize(
    ("kind", "round_", "blocks"),
    [
        (ClientEnrolled, None, 61),
        (RollCommitted, HONEST, 20),
        (BeaconPublished, HONEST, 30),
        (BeaconPublished, HONEST, -3),
        (VerdictAttested, SPLIT, 60),
        (RoundFinalised, HONEST, 80),
        (RoundVoided, SPLIT, -5),
        (RoundVoided, NO_ROLL, -5),
        (RoundVoided, LAST, -5),
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


def test_charge_for_no_answer_inside_the_response_window(trail):
    charged = one(trail, ClientCharged, FAULTY, outcome=Outcome.UNANSWERED)
    held = one(trail, AuditHeld, FAULTY, client=charged.event.client)
    early = swapped(trail, charged, replace(charged, block=held.block + 1))
    facts = [f.finding.fact for f in check_trail(early).failures if f.check == "schedule"]
    assert facts == ["ClientCharged is in its phase"]


def test_charge_for_an_answer_that_is_outside_needs_no_window(trail):
    charged = entries_of(trail, ClientCharged, FAULTY, outcome=Outcome.OUTSIDE)[0]
    unanswered = changed(trail, charged, outcome=Outcome.UNANSWERED)
    assert_named(unanswered, "schedule", "ClientCharged is in its phase", round_=FAULTY)


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
    terms = replace(trail.final_state.terms, rounds=1)
    assert_named(with_final_state(trail, terms=terms), "terms and documents", "terms of the job")


def with_terms(trail, **changes):
    """The trail of a job that was created with other terms, which the contract has too."""
    created = one(trail, JobCreated)
    terms = replace(created.event.terms, **changes)
    return with_final_state(changed(trail, created, terms=terms), terms=terms)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"treasury_share": 10_001}, "basis points for the treasury"),
        ({"client_deposit": 1}, "penalty of a client"),
        ({"member_stake": 1}, "penalty for withholding"),
        ({"unbonding_delay": 1}, "within the unbonding delay"),
        ({"unlock_delay": 1}, "within the unlock delay"),
        ({"fewest_contributions": 2}, "fewest contributions to a sum"),
    ],
)
def test_terms_that_protect_nobody(trail, change, fact):
    assert_named(with_terms(trail, **change), "terms and documents", fact)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"silence": 1}, "pay of a member"),
        ({"dissent": 1}, "penalty for silence"),
        ({"absence": 1}, "penalty for dissent"),
        ({"withheld": 1}, "penalty for absence"),
    ],
)
def test_penalties_in_another_order(trail, change, fact):
    penalties = replace(trail.final_state.terms.penalties, **change)
    assert_named(with_terms(trail, penalties=penalties), "terms and documents", fact)


def test_budget_that_does_not_pay_what_the_terms_promise(trail):
    created = one(trail, JobCreated)
    less = changed(trail, created, budget=created.event.budget - 8)
    assert_named(less, "terms and documents", "wei of the budget")


def test_budget_that_is_not_escrowed(trail):
    entry = one(trail, Funded)
    assert_named(without(trail, entry), "terms and documents", "wei that are escrowed")
    less = changed(trail, entry, amount=entry.event.amount - 1)
    assert_named(less, "terms and documents", "wei that are escrowed")


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


def test_member_with_the_number_of_another(trail):
    entry = entries_of(trail, MemberJoined)[0]
    assert_named(changed(trail, entry, number=4), "enrolment", "number of the member")


def test_sealing_key_that_is_no_point(trail):
    entry = entries_of(trail, MemberJoined)[0]
    short = changed(trail, entry, sealing_key=bytes(32))
    assert_named(short, "enrolment", "bytes of the sealing key", who=entry.event.member)


def test_key_of_another(trail):
    first, second = entries_of(trail, KeyRegistered)[:2]
    other = changed(trail, first, public_key=second.event.public_key)
    report = check_trail(other)
    assert "group keys" in {failure.check for failure in report.failures}
    # The proof of possession, sent with the key, is not for this one either, and comes earlier.
    assert report.first_failure.check == "signed statements"


def test_group_key_that_is_not_the_sum(trail):
    formed, key = entries_of(trail, GroupFormed)[1], entries_of(trail, KeyRegistered)[0]
    other = changed(trail, formed, group_key=key.event.public_key)
    assert_named(other, "group keys", "sum of the members' keys")


# --- seats


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda terms: {"to": terms.members[1]}, "who takes the seat has none"),
        (lambda terms: {"to": terms.treasury}, "of the roster and has staked"),
        (lambda terms: {"from_": terms.members[0]}, "who gives up the seat"),
        (lambda terms: {"seat": 1}, "who gives up the seat"),
        (lambda terms: {"seat": 3}, "who gives up the seat"),
        (lambda terms: {"epoch": 2}, "number of the seat change"),
    ],
)
def test_another_seat_change(trail, change, fact):
    entry = one(trail, SeatChanged)
    other = changed(trail, entry, **change(trail.final_state.terms))
    assert_named(other, "seats", fact)


def test_seat_for_a_standby_that_has_not_staked(trail):
    standby = trail.final_state.terms.standbys[0]
    joined = one(trail, MemberJoined, member=standby)
    facts = [f.finding.fact for f in check_trail(without(trail, joined)).failures]
    assert "who takes the seat is of the roster and has staked" in facts


def test_seat_change_that_the_node_conceals(trail):
    """Nothing fits after it: the first trace is the key that was formed with it."""
    concealed = without(trail, one(trail, SeatChanged))
    assert check_trail(concealed).first_failure.check == "order of events"
    facts = {f.finding.fact for f in check_trail(concealed).failures}
    assert {"seats", "seat changes", "seats of the round"} <= facts


def test_seats_that_the_contract_does_not_have(trail):
    participants = replace(trail.final_state.participants, seats=(0, 1, 200))
    assert_named(with_final_state(trail, participants=participants), "seats", "seats")


# --- openings, rolls and beacon


def test_another_opening(trail):
    entry = one(trail, RoundOpened, WITHHELD)
    other = changed(trail, entry, opening=OTHER)
    assert_named(other, "openings", "hash of the opening", round_=WITHHELD)
    assert {"signed statements", "beacon"} <= {f.check for f in check_trail(other).failures}


def test_opening_on_another_chain_of_blocks(trail):
    opened = one(trail, RoundOpened, WITHHELD)
    parents = {**trail.parents, opened.block: "0x" + "11" * 32}
    other = replace(trail, parents=parents)
    assert_named(other, "openings", "hash of the opening", round_=WITHHELD)
    parents.pop(opened.block)
    assert_named(other, "openings", "hash of the opening", round_=WITHHELD)


def test_opening_in_another_epoch(trail):
    entry = one(trail, RoundOpened, SPLIT)
    assert_named(changed(trail, entry, epoch=0), "openings", "seat changes before", round_=SPLIT)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"opening": OTHER}, "hash of the opening"),
        ({"seats": (0, 1, 3)}, "seats of the round"),
        ({"epoch": 1}, "seat changes before"),
        ({"opened_at": 1}, "block of the opening"),
    ],
)
def test_opening_that_the_contract_does_not_have(trail, change, fact):
    rounds = trail.final_state.rounds
    wrong = {**rounds, HONEST: replace(rounds[HONEST], **change)}
    assert_named(with_final_state(trail, rounds=wrong), "openings", fact, round_=HONEST)


def pairs_of(entry):
    data = entry.event.pairs
    return [data[at : at + 36] for at in range(0, len(data), 36)]


def with_pairs(trail, entry, pairs):
    return changed(trail, entry, pairs=b"".join(pairs), count=len(pairs))


def test_roll_with_a_stranger(trail):
    entry = one(trail, RollCommitted, HONEST)
    pairs = [*pairs_of(entry)[:-1], (77).to_bytes(4, "big") + OTHER]
    strange = with_pairs(trail, entry, pairs)
    assert_named(strange, "rolls", "index of a client on the roll", round_=HONEST)


def test_roll_that_names_a_client_twice(trail):
    entry = one(trail, RollCommitted, HONEST)
    first, *rest = pairs_of(entry)
    twice = with_pairs(trail, entry, [first, first, *rest[1:]])
    assert_named(twice, "rolls", "increasing order of client", round_=HONEST)


def test_roll_with_a_suspended_client(trail):
    """Client 3 was charged before this round opened."""
    entry = one(trail, RollCommitted, SPLIT)
    pairs = [pairs_of(entry)[0], (3).to_bytes(4, "big") + OTHER]
    suspended = one(trail, ClientEnrolled, index=3).event.client
    assert_named(
        with_pairs(trail, entry, pairs),
        "rolls",
        "was active when the round opened",
        round_=SPLIT,
        who=suspended,
    )


def test_roll_with_an_empty_commitment(trail):
    entry = one(trail, RollCommitted, HONEST)
    pairs = [pairs_of(entry)[0][:4] + bytes(32), *pairs_of(entry)[1:]]
    assert_named(with_pairs(trail, entry, pairs), "rolls", "commitment is empty", round_=HONEST)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"count": 99}, "contributions on the roll"),
        ({"count": 0}, "contributions on the roll"),
        ({"count": 7}, "bytes of the pairs"),
        ({"pairs": bytes(35)}, "bytes of the pairs"),
        ({"root": bytes(32)}, "root of the roll is empty"),
    ],
)
def test_another_roll(trail, change, fact):
    entry = one(trail, RollCommitted, HONEST)
    assert_named(changed(trail, entry, **change), "rolls", fact, round_=HONEST)


@pytest.mark.parametrize("round_", [HONEST, FAULTY, WITHHELD, SPLIT, LAST])
def test_roll_that_nobody_signed(trail, round_):
    """The root cannot be recomputed: signatures, beacon and evidence show that it is another."""
    entry = one(trail, RollCommitted, round_)
    other = changed(trail, entry, root=OTHER)
    assert_named(other, "signed statements", "two members signed the Roll", round_=round_)
    assert "beacon" in {f.check for f in check_trail(other).failures}


def test_pair_with_another_commitment(trail):
    entry = one(trail, RollCommitted, FAULTY)
    pairs = pairs_of(entry)
    pairs[1] = pairs[1][:4] + OTHER
    other = with_pairs(trail, entry, pairs)
    assert_named(other, "signed statements", "two members signed the Roll", round_=FAULTY)
    facts = {f.finding.fact for f in check_trail(other).failures}
    assert "commitment of the contribution that is held" in facts


def test_roll_that_the_contract_does_not_have(trail):
    rounds = trail.final_state.rounds
    wrong = {**rounds, SPLIT: replace(rounds[SPLIT], root=OTHER)}
    assert_named(with_final_state(trail, rounds=wrong), "rolls", "root and count", round_=SPLIT)


def test_another_seed(trail):
    entry = one(trail, BeaconPublished, 0)
    assert_named(changed(trail, entry, seed=OTHER), "beacon", "seed of the signature", round_=0)


def test_beacon_of_another_round(trail):
    first, other = one(trail, BeaconPublished, 0), one(trail, BeaconPublished, SPLIT)
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
    other = changed(trail, entry, passes=b"\x01")
    failure = assert_named(other, "verdicts", "decided by two equal attestations", round_=0)
    assert "2 equal" in failure.finding.expected


def test_attestation_by_a_stranger(trail):
    entry = entries_of(trail, VerdictAttested, 0)[0]
    other = changed(trail, entry, member=trail.final_state.terms.treasury)
    assert_named(other, "verdicts", "who attests has a seat in the round", round_=0)


def test_member_that_attests_twice(trail):
    first, second = entries_of(trail, VerdictAttested, 0)[:2]
    twice = changed(trail, second, member=first.event.member)
    assert_named(twice, "verdicts", "a member attests once", round_=0)


def test_decision_that_nobody_attested(trail):
    entry = one(trail, VerdictDecided, 0)
    assert_named(
        changed(trail, entry, verdict_hash=OTHER), "verdicts", "second equal attestation", round_=0
    )


def judged_anew(trail, round_, passes):
    """The trail with another verdict, attested by those who attested the decided one."""
    decided = one(trail, VerdictDecided, round_)
    before = decided.event.verdict_hash
    for entry in entries_of(trail, VerdictAttested, round_):
        if keccak256(entry.event.passes) == before:
            trail = changed(trail, entry, passes=passes)
    passed = int.from_bytes(passes, "little").bit_count()
    return changed(trail, decided, verdict_hash=keccak256(passes), passed=passed)


def test_decision_that_counts_other_passes(trail):
    entry = one(trail, VerdictDecided, HONEST)
    assert_named(
        changed(trail, entry, passed=7), "verdicts", "second equal attestation", round_=HONEST
    )


def test_verdict_about_a_client_that_is_not_on_the_roll(trail):
    """Client 6 was not in the last round."""
    anew = judged_anew(trail, LAST, bytes([0b1000101]))
    client = one(trail, ClientEnrolled, index=6).event.client
    assert_named(anew, "passes", "a client that passed is on the roll", round_=LAST, who=client)


def test_verdict_about_nobody(trail):
    anew = judged_anew(trail, HONEST, b"\x7f\x01")
    assert_named(anew, "passes", "index of a client that passed", round_=HONEST)


def test_verdict_with_more_passes_than_contributions(trail):
    anew = judged_anew(trail, LAST, bytes([0b1111]))
    assert_named(anew, "verdicts", "contributions that pass", round_=LAST)


def test_contribution_that_is_left_out_without_an_audit(trail):
    """Client 0 was not audited: nobody may choose who is in the sum."""
    anew = judged_anew(trail, HONEST, b"\xfe")
    client = one(trail, ClientEnrolled, index=0).event.client
    fact = "a contribution that is not audited passes"
    assert_named(anew, "passes", fact, round_=HONEST, who=client)


def test_contribution_that_does_not_open_in_mpc_is_left_out_without_an_audit(trail):
    created = one(trail, JobCreated)
    policy = b'{"commitment_scheme":"mpc"}'
    terms = replace(created.event.terms, policy_hash=keccak256(policy))
    opens_in_mpc = with_final_state(
        changed(trail, created, policy=policy, terms=terms), terms=terms
    )
    report = check_trail(judged_anew(opens_in_mpc, HONEST, b"\xfe"))
    assert "passes" not in {failure.check for failure in report.failures}
    assert any(note.startswith("gradients of this job open inside MPC") for note in report.notes)


def test_verdict_that_is_not_canonical(trail):
    anew = judged_anew(trail, HONEST, b"\xff\x00")
    assert_named(anew, "verdicts", "the decided verdict is canonical", round_=HONEST)


def test_attestation_that_the_node_conceals(trail):
    """The third one, after the decision: it was paid, so that less went back to the creator."""
    last = entries_of(trail, VerdictAttested, HONEST)[2]
    concealed = without(trail, last)
    assert_named(concealed, "rewards", "wei that nobody can earn any more")
    facts = [f.finding.fact for f in check_trail(concealed).failures if f.check == "verdicts"]
    assert facts == ["mask of those who attested", "mask of the majority"]


def test_attestation_that_the_contract_does_not_have(trail):
    rounds = trail.final_state.rounds
    wrong = {**rounds, SPLIT: replace(rounds[SPLIT], attestations=(OTHER,) * 3)}
    fact = "hashes that members attested"
    assert_named(with_final_state(trail, rounds=wrong), "verdicts", fact, round_=SPLIT)


# --- models


def test_round_on_another_model(trail):
    entry = one(trail, RoundOpened, 2)
    assert_named(changed(trail, entry, model_hash=OTHER), "openings", "opens on", round_=2)


def test_model_that_a_void_round_does_not_keep(trail):
    """The round after the void one must open on the model of the one before it."""
    final = one(trail, RoundFinalised, 2)
    other = changed(trail, final, model_hash=OTHER)
    report = check_trail(other)
    facts = [f.finding for f in report.failures if "model" in f.finding.fact]
    assert [fact.round for fact in facts] == [SPLIT, NO_ROLL, LAST, None]


def test_model_that_the_contract_does_not_have(trail):
    progress = replace(trail.final_state.progress, model_hash=OTHER)
    assert_named(with_final_state(trail, progress=progress), "openings", "current model")
