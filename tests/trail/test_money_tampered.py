"""Changes one fact about money or one signature: the responsible check reports it."""

from dataclasses import replace
from enum import Enum

import pytest
from contract_player import PENALTY
from played_job import FAULTY, HONEST, LAST, WITHHELD
from tampered_trails import (
    assert_named,
    changed,
    entries_of,
    one,
    swapped,
    with_final_state,
    without,
)

from opfl_chain.chain.bindings.events import (
    AuditHeld,
    AuditUnlocked,
    Captured,
    Claimed,
    ClientAcquitted,
    ClientCharged,
    ClientEnrolled,
    ClientStatusChanged,
    CreditWithdrawn,
    Distributed,
    JobClosed,
    JobCreated,
    KeyRegistered,
    Locked,
    MemberJoined,
    MemberPenalised,
    Paid,
    PartialPublished,
    Refunded,
    Released,
    RollCommitted,
    RoundFinalised,
    SeatChanged,
    UnbondingStarted,
    VerdictDecided,
    Withdrawn,
)
from opfl_chain.chain.bindings.types import Account, ClientStatus, MemberFault, Outcome, Role
from opfl_chain.trail import check_trail
from opfl_chain.trail.history import History

OTHER = bytes(31) + b"\x01"


def client_at(trail, index):
    return one(trail, ClientEnrolled, index=index).event.client


def history(trail):
    return History(trail, one(trail, JobCreated))


# --- audits


def test_hold_of_another_amount(trail):
    entry = entries_of(trail, AuditHeld, FAULTY)[0]
    less = changed(trail, entry, held=entry.event.held - 1)
    who = entry.event.client
    failure = assert_named(less, "audits", "wei that are held", round_=FAULTY, who=who)
    assert failure.finding.expected == failure.finding.found + 1


def test_hold_of_a_short_deposit_takes_no_more_than_is_there(trail):
    """Client 5 failed twice before its first audit was held."""
    entry = one(trail, AuditHeld, WITHHELD, client=client_at(trail, 5))
    assert 0 < entry.event.held < PENALTY
    more = changed(trail, entry, held=PENALTY)
    assert_named(more, "audits", "at most the deposit", round_=WITHHELD, who=entry.event.client)


def test_hold_of_a_client_that_passed(trail):
    entry = one(trail, AuditHeld, WITHHELD, client=client_at(trail, 3))
    other = changed(trail, entry, client=client_at(trail, 0))
    fact = "the client that is held passed"
    assert_named(other, "audits", fact, round_=WITHHELD, who=client_at(trail, 0))


def test_hold_of_a_client_that_was_not_audited(trail):
    entry = one(trail, AuditHeld, FAULTY, client=client_at(trail, 4))
    other = changed(trail, entry, client=client_at(trail, 3))
    facts = [f.finding.fact for f in check_trail(other).failures if f.check == "audits"]
    assert facts[:2] == ["the client that is held was audited", "the client that is held passed"]


def test_hold_of_a_client_that_is_not_on_the_roll(trail):
    entry = one(trail, AuditHeld, LAST)
    other = changed(trail, entry, client=client_at(trail, 7))
    facts = [f.finding.fact for f in check_trail(other).failures if f.check == "audits"]
    assert "the client that is held is on the roll" in facts


def test_second_hold_in_one_round(trail):
    first, second = entries_of(trail, AuditHeld, FAULTY)[:2]
    again = changed(trail, second, client=first.event.client)
    assert_named(again, "audits", "held at most once", round_=FAULTY)


def test_hold_before_the_verdict(trail):
    undecided = without(trail, one(trail, VerdictDecided, LAST))
    facts = {f.finding.fact for f in check_trail(undecided).failures if f.check == "audits"}
    assert "audits are held after the verdict" in facts


def test_charge_of_another_amount(trail):
    entry = entries_of(trail, ClientCharged, FAULTY)[0]
    more = changed(trail, entry, amount=entry.event.amount + 1)
    assert_named(more, "audits", "taken for good", round_=FAULTY, who=entry.event.client)


def test_charge_of_what_was_acquitted(trail):
    acquitted = one(trail, ClientAcquitted, FAULTY)
    charged = entries_of(trail, ClientCharged, FAULTY)[1]
    both = changed(trail, charged, client=acquitted.event.client)
    assert_named(both, "audits", "ends an audit that is held", round_=FAULTY)


def test_charge_of_what_was_never_held(trail):
    charged = entries_of(trail, ClientCharged, FAULTY)[0]
    other = changed(trail, charged, client=client_at(trail, 7))
    assert_named(other, "audits", "ends an audit that is held", round_=FAULTY)


@pytest.mark.parametrize("outcome", [Outcome.NONE, Outcome.PASSED])
def test_charge_that_says_nothing_against_the_client(trail, outcome):
    entry = entries_of(trail, ClientCharged, FAULTY)[0]
    other = changed(trail, entry, outcome=outcome)
    assert_named(other, "audits", "a charge says why", round_=FAULTY)


def test_acquittal_that_gives_back_less(trail):
    entry = one(trail, ClientAcquitted, FAULTY)
    less = changed(trail, entry, released=entry.event.released - 1)
    assert_named(less, "audits", "wei that go back", round_=FAULTY)


def test_deposit_that_is_unlocked_though_a_standby_can_decide(trail):
    entry = one(trail, ClientAcquitted, FAULTY)
    unlocked = AuditUnlocked(entry.event.round, entry.event.client, entry.event.released)
    other = swapped(trail, entry, replace(entry, event=unlocked))
    facts = {f.finding.fact for f in check_trail(other).failures}
    assert "deposits are unlocked in jobs without a standby" in facts
    assert "AuditUnlocked is in its phase" in facts


def test_audit_that_the_node_conceals(trail):
    """Its end shows that it was held."""
    held = one(trail, AuditHeld, WITHHELD, client=client_at(trail, 3))
    assert not check_trail(without(trail, held)).holds
    facts = [f.finding.fact for f in check_trail(without(trail, held)).failures]
    assert "ClientCharged ends an audit that is held" in facts


def test_charge_that_the_contract_does_not_have(trail):
    charges = dict(trail.final_state.charges)
    key = (LAST, client_at(trail, 1))
    charges[key] = replace(charges[key], held=1)
    fact = "charge of the client"
    assert_named(with_final_state(trail, charges=charges), "audits", fact, round_=LAST)


# --- members


def test_penalty_of_another_amount(trail):
    entry = one(trail, MemberPenalised, FAULTY, fault=MemberFault.DISSENT)
    more = changed(trail, entry, amount=entry.event.amount + 1)
    assert_named(more, "member penalties", "wei of the penalty", round_=FAULTY)


def test_penalty_of_a_short_stake_takes_no_more_than_is_there(trail):
    entry = one(trail, MemberPenalised, FAULTY, fault=MemberFault.FALSEHOOD)
    stake = trail.final_state.terms.member_stake
    assert 0 < entry.event.amount < stake
    more = changed(trail, entry, amount=stake)
    assert_named(more, "member penalties", "at most the stake", round_=FAULTY)


@pytest.mark.parametrize("fault", [MemberFault.WITHHELD, MemberFault.SILENCE])
def test_penalty_for_what_the_member_did_not_do(trail, fault):
    """It attested another verdict in this round, and published its part."""
    entry = one(trail, MemberPenalised, FAULTY, fault=MemberFault.DISSENT)
    assert_named(
        changed(trail, entry, fault=fault),
        "member penalties",
        f"the fault shows: {fault.name.lower()}",
        round_=FAULTY,
        who=entry.event.member,
    )


def test_penalty_of_a_member_of_the_majority(trail):
    entry = one(trail, MemberPenalised, FAULTY, fault=MemberFault.DISSENT)
    other = changed(trail, entry, member=trail.final_state.terms.members[0])
    assert_named(other, "member penalties", "the fault shows: dissent", round_=FAULTY)


def test_penalty_of_a_standby_for_the_silence_of_a_seat(trail):
    entry = one(trail, MemberPenalised, WITHHELD, fault=MemberFault.SILENCE)
    other = changed(trail, entry, member=trail.final_state.terms.standbys[0])
    assert_named(other, "member penalties", "the fault shows: silence", round_=WITHHELD)


def test_penalty_for_a_part_that_was_published(trail):
    penalised = one(trail, MemberPenalised, WITHHELD, fault=MemberFault.WITHHELD)
    partial = entries_of(trail, PartialPublished, WITHHELD)[0]
    other = changed(trail, penalised, member=partial.event.member)
    assert_named(other, "member penalties", "the fault shows: withheld", round_=WITHHELD)


def test_second_penalty_for_one_fault(trail):
    entry = one(trail, MemberPenalised, WITHHELD, fault=MemberFault.SILENCE)
    again = changed(trail, entry, fault=MemberFault.WITHHELD)
    assert_named(again, "member penalties", "pays once", round_=WITHHELD)


@pytest.mark.parametrize(
    ("round_", "fault"),
    [(WITHHELD, MemberFault.ABSENCE), (FAULTY, MemberFault.FALSEHOOD)],
)
def test_certified_penalty_of_a_stranger(trail, round_, fault):
    entry = one(trail, MemberPenalised, round_, fault=fault)
    other = changed(trail, entry, member=trail.final_state.terms.treasury)
    fact = "who pays is of the roster and has staked"
    assert_named(other, "member penalties", fact, round_=round_)


# --- where it goes


@pytest.mark.parametrize("part", ["burned", "to_treasury", "to_members"])
def test_split_that_is_off_by_a_wei(trail, part):
    entry = entries_of(trail, Distributed)[1]
    off = changed(trail, entry, **{part: getattr(entry.event, part) + 1})
    assert_named(off, "split of penalties", "wei that are burned")


def test_credit_of_another_amount(trail):
    found = history(trail).distributions[0]
    entry = found.credited[1]
    more = changed(trail, entry, amount=entry.event.amount + 1)
    failure = assert_named(more, "split of penalties", "wei that each is credited")
    assert failure.finding.who == found.cause.who


def test_compensation_for_the_member_that_pays(trail):
    found = history(trail).distributions[0]
    other = changed(trail, found.credited[1], account=found.payer)
    assert_named(other, "split of penalties", "wei that each is credited")


def test_members_earn_nothing_from_a_charge(trail):
    charged = entries_of(trail, ClientCharged)
    for found in history(trail).distributions:
        if found.cause in charged:
            assert found.distributed.event.to_members == 0
            other = changed(trail, found.credited[0], account=trail.final_state.terms.members[0])
            assert_named(other, "split of penalties", "wei that each is credited")


def test_distribution_out_of_nowhere(trail):
    charged = entries_of(trail, ClientCharged, WITHHELD)[0]
    facts = [f.finding.fact for f in check_trail(without(trail, charged)).failures]
    assert "what is distributed was taken just before" in facts


# --- pay


def test_pay_of_another_amount(trail):
    entry = entries_of(trail, Claimed)[0]
    more = changed(trail, entry, amount=entry.event.amount + 1)
    assert_named(more, "rewards", "what is claimed was earned", round_=HONEST)


def test_pay_for_a_contribution_that_did_not_pass(trail):
    entry = entries_of(trail, Claimed, FAULTY)[0]
    other = changed(trail, entry, account=client_at(trail, 1))
    assert_named(other, "rewards", "what is claimed was earned", round_=FAULTY)


def test_pay_for_the_member_that_dissented(trail):
    entry = one(trail, Claimed, FAULTY, account=trail.final_state.terms.members[1])
    other = changed(trail, entry, account=trail.final_state.terms.members[2])
    assert_named(other, "rewards", "what is claimed was earned", round_=FAULTY)


def test_pay_that_was_claimed_before(trail):
    first, second = entries_of(trail, Claimed, account=client_at(trail, 0))[:2]
    again = changed(trail, second, round=first.event.round)
    assert_named(again, "rewards", "not claimed before", round_=HONEST)


def test_pay_before_the_verdict(trail):
    claim = one(trail, Claimed, LAST, account=client_at(trail, 0))
    decided = one(trail, VerdictDecided, LAST)
    early = swapped(trail, claim, replace(claim, block=decided.block - 1))
    facts = [f.finding.fact for f in check_trail(early).failures if f.check == "rewards"]
    assert "what is claimed was earned in the round, and not claimed before" in facts


def test_claim_that_is_not_paid(trail):
    last = entries_of(trail, Claimed, account=client_at(trail, 0))[-1]
    paid = history(trail).after(last, Paid)
    assert_named(without(trail, paid), "rewards", "who is paid", round_=HONEST)
    other = changed(trail, paid, recipient=client_at(trail, 1))
    assert_named(other, "rewards", "who is paid", round_=HONEST)
    less = changed(trail, paid, amount=paid.event.amount - 1)
    assert_named(less, "rewards", "the budget pays it", round_=LAST)


def test_payment_out_of_nowhere(trail):
    claim = one(trail, Claimed, account=client_at(trail, 6))
    assert_named(without(trail, claim), "rewards", "claimed or refunded just before")


def test_refund_of_what_is_still_owed(trail):
    entry = one(trail, Refunded)
    more = changed(trail, entry, amount=entry.event.amount + 1)
    assert_named(more, "rewards", "wei that nobody can earn any more")


def test_refund_for_somebody_else(trail):
    entry = one(trail, Refunded)
    other = changed(trail, entry, creator=trail.final_state.terms.treasury)
    assert_named(other, "rewards", "who gets the rest")


def test_refund_before_the_job_is_over(trail):
    entry, closed = one(trail, Refunded), one(trail, JobClosed)
    early = swapped(trail, entry, replace(entry, block=closed.block - 1))
    facts = [f.finding.fact for f in check_trail(early).failures if f.check == "rewards"]
    assert "the job is over" in facts


def test_second_refund(trail):
    entry = one(trail, Refunded)
    paid = history(trail).after(entry, Paid)
    again = [replace(each, block=trail.block) for each in (entry, paid)]
    twice = replace(trail, entries=(*trail.entries, *again))
    facts = [f.finding.fact for f in check_trail(twice).failures if f.check == "rewards"]
    assert "refunds before" in facts


@pytest.mark.parametrize(
    ("change", "check", "fact"),
    [
        ({"earned": 0}, "rewards", "wei that all decided rounds have earned"),
        ({"paid": 0}, "rewards", "wei that were claimed"),
        ({"budget": 0}, "balances", "wei of the budget"),
    ],
)
def test_pay_that_the_contract_does_not_have(trail, change, check, fact):
    assert_named(with_final_state(trail, **change), check, fact)


# --- stakes and credits


@pytest.mark.parametrize("kind", [Locked, Captured, Released])
def test_balance_that_does_not_follow(trail, kind):
    entry = entries_of(trail, kind)[-1]
    off = changed(trail, entry, balance=entry.event.balance + 1)
    assert_named(off, "balances", f"wei of the stake after {kind.__name__}")
    assert {f.check for f in check_trail(off).failures} == {"balances"}


def test_deposit_that_is_too_small(trail):
    entry = one(trail, Locked, owner=client_at(trail, 7))
    less = changed(trail, entry, amount=1, balance=1)
    assert_named(less, "enrolment", "stake that is locked", who=client_at(trail, 7))


def test_withdrawal_of_more_than_there_is(trail):
    entry = entries_of(trail, Withdrawn)[0]
    more = changed(trail, entry, amount=entry.event.amount + 1)
    assert_named(more, "balances", "all of which are taken", who=entry.event.owner)


def test_credit_paid_that_was_not_earned(trail):
    entry = entries_of(trail, CreditWithdrawn)[0]
    more = changed(trail, entry, amount=entry.event.amount + 1)
    assert_named(more, "balances", "all of which are paid", who=entry.event.account)


def test_stake_that_the_contract_does_not_have(trail):
    owner = (Role.CLIENT, client_at(trail, 7))
    stakes = {
        **trail.final_state.stakes,
        owner: Account(trail.final_state.stakes[owner].balance - 1, 0),
    }
    report = check_trail(with_final_state(trail, stakes=stakes))
    facts = [failure.finding.fact for failure in report.failures]
    assert facts == [
        "wei of the client's stake",
        "wei that were locked or escrowed are withdrawn, held, set aside, burned, credited, paid"
        " for work, refunded or left of the budget",
    ]


@pytest.mark.parametrize(
    ("change", "fact"),
    [({"burned": 0}, "wei that are burned"), ({"held": 0}, "wei that the contract owes")],
)
def test_sums_that_the_contract_does_not_have(trail, change, fact):
    assert_named(with_final_state(trail, **change), "balances", fact)


def test_credit_that_the_contract_does_not_have(trail):
    member = trail.final_state.terms.members[1]
    credits = {**trail.final_state.credits, member: 0}
    assert_named(with_final_state(trail, credits=credits), "balances", "wei of credit", who=member)


def test_sums_over_several_jobs_are_not_compared_with_one(trail):
    assert check_trail(with_final_state(trail, job_count=2, burned=10**30, held=0)).holds


def test_money_that_is_set_aside_counts(trail):
    """The audit of the last round is undecided: without it, money would be missing."""
    held = one(trail, AuditHeld, LAST)
    facts = [f.finding.fact for f in check_trail(without(trail, held)).failures]
    assert any("wei that were locked" in fact for fact in facts)


# --- status


def test_client_that_stays_active_without_a_deposit(trail):
    entry = entries_of(trail, ClientStatusChanged, status=ClientStatus.SUSPENDED)[0]
    active, who = without(trail, entry), entry.event.client
    assert_named(active, "client status", "after AuditHeld", round_=FAULTY, who=who)


def test_client_that_is_suspended_with_its_deposit(trail):
    entry = entries_of(trail, ClientStatusChanged, status=ClientStatus.ACTIVE)[-1]
    wrong = changed(trail, entry, status=ClientStatus.SUSPENDED)
    assert check_trail(wrong).first_failure.check == "client status"


def test_client_that_is_active_while_an_audit_is_undecided(trail):
    held = one(trail, AuditHeld, LAST)
    change = entries_of(trail, ClientStatusChanged, client=held.event.client)[-1]
    active, who = changed(trail, change, status=ClientStatus.ACTIVE), held.event.client
    assert_named(active, "client status", "after AuditHeld", round_=LAST, who=who)


def test_undecided_audits_that_the_contract_does_not_have(trail):
    participants = replace(trail.final_state.participants, undecided=0)
    wrong = with_final_state(trail, participants=participants)
    assert_named(wrong, "client status", "audits that are undecided")


def test_member_that_leaves_before_the_job_is_over(trail):
    started = one(trail, UnbondingStarted, role=Role.MEMBER)
    early = without(trail, one(trail, JobClosed))
    facts = [f.finding.fact for f in check_trail(early).failures]
    fact = "members serve until the job is over and every audit decided"
    assert fact in facts
    open_again = without(trail, entries_of(trail, ClientCharged, WITHHELD)[0])
    places = [f.finding.place for f in check_trail(open_again).failures if f.finding.fact == fact]
    assert places == [started.place]


def test_client_that_leaves_unnoticed(trail):
    started = one(trail, UnbondingStarted, owner=client_at(trail, 0))
    change = one(
        trail, ClientStatusChanged, client=client_at(trail, 0), status=ClientStatus.LEAVING
    )
    assert started.transaction == change.transaction
    assert_named(without(trail, change), "client status", "who asks leaves")


# --- signatures


def recalled(trail, entry, edit):
    data = bytearray(trail.calls[entry.transaction])
    edit(data)
    return replace(trail, calls={**trail.calls, entry.transaction: bytes(data)})


def spoil_last_signature(data):
    """Signatures of 65 bytes are padded to 96: the last one begins 96 bytes before the end."""
    data[-96 + 5] ^= 1


def first_signed(trail, kind, round_, **arguments):
    return entries_of(trail, kind, round_, **arguments)[0]


@pytest.mark.parametrize(
    ("kind", "round_", "arguments"),
    [
        (RoundFinalised, HONEST, {}),
        (RollCommitted, HONEST, {}),
        (ClientCharged, FAULTY, {}),
        (ClientAcquitted, FAULTY, {}),
        (SeatChanged, None, {}),
        (MemberPenalised, WITHHELD, {"fault": MemberFault.ABSENCE}),
        (MemberPenalised, FAULTY, {"fault": MemberFault.FALSEHOOD}),
    ],
)
def test_signature_of_nobody(trail, kind, round_, arguments):
    entry = first_signed(trail, kind, round_, **arguments)
    assert_named(
        recalled(trail, entry, spoil_last_signature),
        "signed statements",
        "two members signed",
        round_=round_,
    )


def test_result_that_nobody_signed(trail):
    entry = one(trail, RoundFinalised, HONEST)
    other = changed(trail, entry, aggregate_hash=OTHER)
    assert_named(other, "signed statements", "two members signed the RoundResult", round_=HONEST)


def test_outcome_that_nobody_signed(trail):
    """Both are charges, and past the response window: only the signatures tell them apart."""
    entry = one(trail, ClientCharged, WITHHELD, client=client_at(trail, 3))
    other = changed(trail, entry, outcome=Outcome.UNANSWERED)
    assert_named(other, "signed statements", "two members signed the AuditOutcome", round_=WITHHELD)


def test_outcome_signed_by_a_member_that_lost_its_seat(trail):
    """The standby signed charges after the seat change; without it, it had no seat."""
    concealed = without(trail, one(trail, SeatChanged))
    failures = check_trail(concealed).failures
    charges = [f for f in failures if "signed the AuditOutcome" in f.finding.fact]
    assert len(charges) == 3


def test_fault_that_was_certified_for_another(trail):
    entry = one(trail, MemberPenalised, WITHHELD, fault=MemberFault.ABSENCE)
    other = changed(trail, entry, fault=MemberFault.FALSEHOOD)
    facts = [f.finding.fact for f in check_trail(other).failures]
    assert "two members signed the MemberFaultStatement" in facts


def test_fault_that_its_accused_certified(trail):
    entry = one(trail, MemberPenalised, WITHHELD, fault=MemberFault.ABSENCE)
    own = changed(trail, entry, member=trail.final_state.terms.members[0])
    facts = [f.finding.fact for f in check_trail(own).failures]
    assert "two members signed the MemberFaultStatement" in facts


def test_fault_that_a_standby_without_a_stake_certified(trail):
    standby = one(trail, MemberJoined, member=trail.final_state.terms.standbys[0])
    failures = check_trail(without(trail, standby)).failures
    certified = [f for f in failures if "signed the MemberFaultStatement" in f.finding.fact]
    assert len(certified) == 2


def test_equivocation_that_the_member_did_not_sign(trail):
    entry = one(trail, MemberPenalised, LAST)
    assert entry.event.fault is MemberFault.EQUIVOCATION
    assert_named(
        recalled(trail, entry, spoil_last_signature),
        "signed statements",
        "signer of a message in slot 7",
        round_=LAST,
        who=entry.event.member,
    )


def test_equivocation_of_one_message(trail):
    """The hashes of both messages begin after the selector and three words."""
    entry = one(trail, MemberPenalised, LAST)

    def say_it_twice(data):
        first = 4 + 3 * 32
        data[first + 32 : first + 64] = data[first : first + 32]

    same = recalled(trail, entry, say_it_twice)
    assert_named(same, "signed statements", "two messages in one slot differ", round_=LAST)


def test_contribution_that_the_client_did_not_sign(trail):
    entry = one(trail, AuditHeld, FAULTY, client=client_at(trail, 4))
    assert_named(
        recalled(trail, entry, spoil_last_signature),
        "signed statements",
        "signer of the contribution that is held",
        round_=FAULTY,
        who=client_at(trail, 4),
    )


def test_fault_that_the_call_does_not_name(trail):
    """Absence costs as much as dissent, but nobody certified it."""
    entry = one(trail, MemberPenalised, FAULTY, fault=MemberFault.DISSENT)
    other = changed(trail, entry, fault=MemberFault.ABSENCE)
    fact = "the function that MemberPenalised comes from"
    assert_named(other, "signed statements", fact, round_=FAULTY)


def test_sealing_key_that_the_member_did_not_send(trail):
    """The owner of a key that a node made up could read what clients seal to it."""
    entry = entries_of(trail, MemberJoined)[0]
    other = changed(trail, entry, sealing_key=b"\x03" + bytes(32))
    assert_named(other, "signed statements", "sealing key", who=entry.event.member)


def test_claim_of_another_round_than_the_call_names(trail):
    """The client has earned as much in both."""
    entry = one(trail, Claimed, account=client_at(trail, 6))
    other = changed(trail, entry, round=entry.event.round + FAULTY)
    assert_named(other, "rewards", "round that is claimed", round_=FAULTY)


def test_evidence_of_another_contribution(trail):
    first, second = entries_of(trail, AuditHeld, FAULTY)[:2]
    calls = {**trail.calls, first.transaction: trail.calls[second.transaction]}
    other = replace(trail, calls=calls)
    assert_named(other, "signed statements", "that is held is on the roll", round_=FAULTY)


def test_evidence_with_the_verdict_of_another_round(trail):
    first = entries_of(trail, AuditHeld, FAULTY)[0]
    other = one(trail, AuditHeld, LAST)
    calls = {**trail.calls, first.transaction: trail.calls[other.transaction]}
    wrong = replace(trail, calls=calls)
    assert_named(wrong, "signed statements", "hash of the verdict that is given", round_=FAULTY)


def test_proof_of_possession_of_another_key(trail):
    first, second = entries_of(trail, KeyRegistered)[:2]
    calls = {**trail.calls, first.transaction: trail.calls[second.transaction]}
    assert_named(
        replace(trail, calls=calls),
        "signed statements",
        "proof that it holds the key",
        who=first.event.member,
    )


def test_calls_through_other_contracts_are_not_needed(trail):
    report = check_trail(replace(trail, calls={}))
    assert report.holds
    assert report.facts["signed statements"] == 0
    claims = {entry.transaction for entry in trail.of(Claimed)}
    assert report.notes[-1].startswith(f"{len(trail.calls) - len(claims)} calls were made by other")


def test_first_of_several_is_named_in_the_order_of_the_chain(trail):
    early = entries_of(trail, AuditHeld, FAULTY)[0]
    late = one(trail, RoundFinalised, WITHHELD)
    both = changed(trail, late, model_hash=OTHER)
    both = changed(both, early, held=1)
    assert check_trail(both).first_failure.finding.place == early.place


def test_any_event_may_be_missing_or_doubled_and_nothing_breaks(trail):
    """A node may return anything: checks report findings and never raise."""
    for entry in {(entry.name, entry.round): entry for entry in trail.entries}.values():
        # One part of a beacon that is there: it might as well have been published at once.
        if (entry.name, entry.round) != ("PartialPublished", FAULTY):
            assert not check_trail(without(trail, entry)).holds, entry
    for entry in {entry.name: entry for entry in trail.entries[:-1]}.values():
        doubled = swapped(trail, trail.entries[-1], replace(entry))
        assert not check_trail(doubled).holds, entry


def another(trail, value):
    """Another value of the same type, as a node might state it."""
    terms = trail.final_state.terms
    match value:
        case bool():
            return not value
        case Enum():
            values = list(type(value))
            return values[(values.index(value) + 1) % len(values)]
        case int():
            return value + 1
        case bytes():
            return bytes([value[0] ^ 1]) + value[1:]
        case str():
            return terms.treasury if value != terms.treasury else terms.members[0]
    return None


def test_any_argument_of_an_event_may_be_another_and_is_noticed(trail):
    for entry in {entry.name: entry for entry in reversed(trail.entries)}.values():
        for name, value in vars(entry.event).items():
            # The job is what events are read by; terms have tests of their own.
            if name in ("job", "terms"):
                continue
            report = check_trail(changed(trail, entry, **{name: another(trail, value)}))
            assert not report.holds, (entry.name, name)
