"""Changes one fact about money or one signature: the responsible check reports it."""

from dataclasses import replace

import pytest
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
    Captured,
    ClientEnrolled,
    ClientStatusChanged,
    CreditWithdrawn,
    Distributed,
    JobCreated,
    KeyRegistered,
    Locked,
    MemberPenalised,
    PartialPublished,
    Released,
    RoundFinalised,
    SlashExecuted,
    SlashRequested,
    SlashVetoed,
    UnbondingStarted,
    VerdictDecided,
    Withdrawn,
)
from opfl_chain.chain.bindings.types import Account, ClientStatus, MemberFault, Reason, Role
from opfl_chain.trail import check_trail
from opfl_chain.trail.history import History

OTHER = bytes(31) + b"\x01"


def client_at(trail, index):
    return one(trail, ClientEnrolled, index=index).event.client


def history(trail):
    return History(trail, one(trail, JobCreated))


# --- slashes


def test_slash_of_another_amount(trail):
    entry = entries_of(trail, SlashRequested, 1)[0]
    less = changed(trail, entry, captured=entry.event.captured - 1)
    failure = assert_named(less, "slashes", "wei of the slash", round_=1, who=entry.event.client)
    assert failure.finding.expected == failure.finding.found + 1


def test_slash_of_a_short_deposit_takes_no_more_than_is_there(trail):
    """Client 4 lost half of its deposit before; the penalty is the whole."""
    entry = one(trail, SlashRequested, 2, client=client_at(trail, 4))
    penalty = trail.final_state.terms.penalties.replay_outside
    assert entry.event.captured == penalty // 2
    more = changed(trail, entry, captured=penalty)
    assert_named(more, "slashes", "at most the deposit", round_=2, who=entry.event.client)


def test_slash_for_another_reason(trail):
    entry = one(trail, SlashRequested, 1, client=client_at(trail, 2))
    other = changed(trail, entry, reason=Reason.COMMITMENT_MISMATCH)
    assert_named(other, "slashes", "reason of the slash", round_=1)


def test_slash_of_a_client_that_passed(trail):
    entry = one(trail, SlashRequested, 1, client=client_at(trail, 1))
    other = changed(trail, entry, client=client_at(trail, 0))
    assert_named(other, "slashes", "reason of the slash", round_=1, who=client_at(trail, 0))


def test_second_slash_in_one_round(trail):
    first, second = entries_of(trail, SlashRequested, 2)[:2]
    again = changed(trail, second, client=first.event.client)
    assert_named(again, "slashes", "at most once a round", round_=2)


def test_slash_before_the_verdict(trail):
    undecided = without(trail, one(trail, VerdictDecided, 4))
    facts = {f.finding.fact for f in check_trail(undecided).failures if f.check == "slashes"}
    assert "slashes are for decided verdicts" in facts


def test_execution_of_another_amount(trail):
    entry = entries_of(trail, SlashExecuted, 1)[0]
    more = changed(trail, entry, amount=entry.event.amount + 1)
    assert_named(more, "slashes", "taken for good", round_=1, who=entry.event.client)


def test_execution_of_what_was_vetoed(trail):
    vetoed, executed = one(trail, SlashVetoed, 1), entries_of(trail, SlashExecuted, 1)[0]
    both = changed(trail, executed, client=vetoed.event.client)
    assert_named(both, "slashes", "ends a slash that is pending", round_=1)


def test_veto_that_gives_back_less(trail):
    entry = one(trail, SlashVetoed, 2)
    less = changed(trail, entry, released=entry.event.released - 1)
    assert_named(less, "slashes", "wei that go back", round_=2)


# --- members


def test_penalty_of_another_amount(trail):
    entry = one(trail, MemberPenalised, 1)
    more = changed(trail, entry, amount=entry.event.amount + 1)
    assert_named(more, "member penalties", "wei of the penalty", round_=1)


@pytest.mark.parametrize("fault", [MemberFault.BEACON_WITHHELD, MemberFault.VERDICT_SILENCE])
def test_penalty_for_what_the_member_did_not_do(trail, fault):
    """It attested another verdict in round 1, and published its part."""
    entry = one(trail, MemberPenalised, 1)
    assert_named(
        changed(trail, entry, fault=fault),
        "member penalties",
        f"the fault shows: {fault.name.lower()}",
        round_=1,
        who=entry.event.member,
    )


def test_penalty_of_a_member_of_the_majority(trail):
    entry = one(trail, MemberPenalised, 1)
    other = changed(trail, entry, member=trail.final_state.terms.members[0])
    assert_named(other, "member penalties", "the fault shows: verdict_dissent", round_=1)


def test_penalty_for_a_part_that_was_published(trail):
    penalised = one(trail, MemberPenalised, 2, fault=MemberFault.BEACON_WITHHELD)
    partial = entries_of(trail, PartialPublished, 2)[0]
    other = changed(trail, penalised, member=partial.event.member)
    assert_named(other, "member penalties", "the fault shows: beacon_withheld", round_=2)


def test_second_penalty_for_one_fault(trail):
    entry = one(trail, MemberPenalised, 2, fault=MemberFault.VERDICT_SILENCE)
    again = changed(trail, entry, fault=MemberFault.BEACON_WITHHELD)
    assert_named(again, "member penalties", "pays once", round_=2)


# --- where it goes


@pytest.mark.parametrize("part", ["burned", "to_treasury", "to_committee"])
def test_split_that_is_off_by_a_wei(trail, part):
    entry = entries_of(trail, Distributed)[1]
    off = changed(trail, entry, **{part: getattr(entry.event, part) + 1})
    assert_named(off, "split of slashes", "wei that are burned")


def test_credit_of_another_amount(trail):
    entry = history(trail).distributions[1].credited[1]
    more = changed(trail, entry, amount=entry.event.amount + 1)
    failure = assert_named(more, "split of slashes", "wei that each is credited")
    assert failure.finding.who == history(trail).distributions[1].cause.who


def test_credit_for_the_member_who_dissented(trail):
    entry = history(trail).distributions[1].credited[1]
    other = changed(trail, entry, account=trail.final_state.terms.members[2])
    assert_named(other, "split of slashes", "wei that each is credited")


def test_distribution_out_of_nowhere(trail):
    executed = entries_of(trail, SlashExecuted, 2)[0]
    facts = [f.finding.fact for f in check_trail(without(trail, executed)).failures]
    assert "what is distributed was taken just before" in facts


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
    owner = (Role.CLIENT, client_at(trail, 5))
    stakes = {
        **trail.final_state.stakes,
        owner: Account(trail.final_state.stakes[owner].balance - 1, 0),
    }
    report = check_trail(with_final_state(trail, stakes=stakes))
    facts = [failure.finding.fact for failure in report.failures]
    assert facts == [
        "wei of the client's stake",
        "wei that were locked are withdrawn, held, set aside, burned or paid out as credit",
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
    """The slash of round 4 is pending: without it, money would be missing."""
    requested = one(trail, SlashRequested, 4)
    facts = [f.finding.fact for f in check_trail(without(trail, requested)).failures]
    assert any("wei that were locked" in fact for fact in facts)


# --- status


def test_client_that_stays_active_without_a_deposit(trail):
    entry = entries_of(trail, ClientStatusChanged, status=ClientStatus.SUSPENDED)[0]
    assert_named(without(trail, entry), "client status", "after Captured", who=entry.event.client)


def test_client_that_is_suspended_with_its_deposit(trail):
    entry = entries_of(trail, ClientStatusChanged, status=ClientStatus.ACTIVE)[-1]
    wrong = changed(trail, entry, status=ClientStatus.SUSPENDED)
    assert check_trail(wrong).first_failure.check == "client status"


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


@pytest.mark.parametrize(
    ("kind", "round_"), [(RoundFinalised, 0), (SlashVetoed, 1), (SlashVetoed, 2)]
)
def test_signature_of_nobody(trail, kind, round_):
    entry = one(trail, kind, round_)
    assert_named(
        recalled(trail, entry, spoil_last_signature),
        "signed statements",
        "two members signed",
        round_=round_,
    )


def test_result_that_nobody_signed(trail):
    entry = one(trail, RoundFinalised, 0)
    other = changed(trail, entry, aggregate_hash=OTHER)
    assert_named(other, "signed statements", "two members signed the RoundResult", round_=0)


def test_batched_commitment_that_the_client_did_not_sign(trail):
    entry = one(trail, SlashRequested, 1, client=client_at(trail, 4))
    assert_named(
        recalled(trail, entry, spoil_last_signature),
        "signed statements",
        "signer of the batched commitment",
        round_=1,
        who=client_at(trail, 4),
    )


def test_slashed_client_that_is_not_in_the_batch(trail):
    direct = one(trail, SlashRequested, 1, client=client_at(trail, 1))
    batched = one(trail, SlashRequested, 1, client=client_at(trail, 4))
    calls = {**trail.calls, batched.transaction: trail.calls[direct.transaction]}
    assert_named(replace(trail, calls=calls), "signed statements", "is in the batch", round_=1)


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


def test_first_of_several_is_named_in_the_order_of_the_chain(trail):
    early = entries_of(trail, SlashRequested, 1)[0]
    late = one(trail, RoundFinalised, 2)
    both = changed(trail, late, model_hash=OTHER)
    both = changed(both, early, captured=1)
    assert check_trail(both).first_failure.finding.place == early.place


def test_any_event_may_be_missing_or_doubled_and_nothing_breaks(trail):
    """A node may return anything: checks report findings and never raise."""
    for entry in {(entry.name, entry.round): entry for entry in trail.entries}.values():
        # One part of a beacon that is there: it might as well have been published at once.
        if (entry.name, entry.round) != ("PartialPublished", 1):
            assert not check_trail(without(trail, entry)).holds, entry
    for entry in {entry.name: entry for entry in trail.entries[:-1]}.values():
        doubled = swapped(trail, trail.entries[-1], replace(entry))
        assert not check_trail(doubled).holds, entry
