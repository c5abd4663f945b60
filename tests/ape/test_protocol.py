"""Complete jobs on Anvil: values computed in Python must be accepted by the contracts."""

import ape
from eth_utils.crypto import keccak
from harness import DEPOSIT, PAY, STAKE

from opfl_chain.protocol.randomness import audit_rate_of, is_audited
from opfl_chain.protocol.roll import opening_of
from opfl_chain.protocol.statements import (
    AuditOutcome,
    MemberFaultStatement,
    MemberMessage,
    RoundResult,
    SeatChange,
)
from opfl_chain.protocol.verdict import Outcome, Verdict

CLIENT, MEMBER = 0, 1
DISSENT, ABSENCE = 1, 2
EVERYONE = Verdict.of({0, 1, 2, 3})


def decided_round(protocol, verdict):
    """Run a round in which everyone contributed and `verdict` was decided."""
    job = protocol.start_job()
    round_id = protocol.open_round(job)
    protocol.commit_roll(job, 0)
    protocol.publish_beacon(job, 0)
    protocol.attest(round_id, verdict)
    return job, round_id


def held(protocol, client):
    """Run a round in which a client's audit did not pass, and set its penalty aside."""
    verdict = Verdict.of(EVERYONE.passed - {client})
    job, round_id = decided_round(protocol, verdict)
    protocol.charges.hold(
        round_id,
        protocol.clients[client],
        verdict.passes_bytes,
        protocol.roll_entry(job, 0, client),
        sender=protocol.treasury,
    )
    return job, round_id


def outcome(protocol, job, round_id, client, value):
    address = protocol.clients[client].address
    return AuditOutcome(job, 0, protocol.opening(round_id), address, value)


def test_opening_beacon_and_sampling_agree_with_python(protocol):
    job = protocol.start_job(audit_probability=0.5)
    round_id = protocol.open_round(job)
    opened = protocol.rounds.round(round_id)
    before = protocol.chain.blocks[opened.openedAt - 1].hash
    assert bytes(opened.opening) == opening_of(
        protocol.chain.chain_id, protocol.rounds.address, job, 0, keccak(b"model 0"), bytes(before)
    )
    protocol.commit_roll(job, 0)
    assert bytes(protocol.beacon.message(round_id)) == protocol.message(job, 0)
    protocol.publish_beacon(job, 0)
    seed = bytes(protocol.beacon.seedOf(round_id))
    rate = audit_rate_of(0.5)
    for account in [*protocol.clients, *protocol.roster, protocol.treasury]:
        expected = is_audited(seed, account.address, rate)
        assert protocol.beacon.isAudited(round_id, account) == expected


def test_failed_audit_costs_the_deposit_and_honest_clients_withdraw_theirs(protocol):
    job, round_id = held(protocol, 3)
    cheat = protocol.clients[3]
    outside = outcome(protocol, job, round_id, 3, Outcome.OUTSIDE)
    with ape.reverts(protocol.jobs.SameSigner):
        protocol.charges.charge(
            round_id,
            cheat,
            Outcome.OUTSIDE,
            protocol.signatures(outside, (0, 0)),
            sender=protocol.treasury,
        )
    protocol.charges.charge(
        round_id, cheat, Outcome.OUTSIDE, protocol.signatures(outside), sender=protocol.treasury
    )
    assert protocol.deposits.account(job, CLIENT, cheat).balance == 0
    assert protocol.deposits.burned() == DEPOSIT * 8 // 10
    assert protocol.deposits.creditOf(protocol.treasury) == DEPOSIT * 2 // 10

    honest = protocol.clients[0]
    protocol.jobs.unbondDeposit(job, sender=honest)
    with ape.reverts(protocol.deposits.StillUnbonding):
        protocol.deposits.withdraw(job, CLIENT, sender=honest)
    protocol.mine_past(protocol.deposits.account(job, CLIENT, honest).withdrawableAt)
    before = protocol.deposits.balance
    protocol.deposits.withdraw(job, CLIENT, sender=honest)
    assert protocol.deposits.balance == before - DEPOSIT


def test_client_that_answers_late_is_acquitted_and_one_that_does_not_is_charged_late(protocol):
    job, round_id = held(protocol, 2)
    late = protocol.clients[2]
    unanswered = outcome(protocol, job, round_id, 2, Outcome.UNANSWERED)
    with ape.reverts(protocol.charges.ResponseWindowOpen):
        protocol.charges.charge(
            round_id,
            late,
            Outcome.UNANSWERED,
            protocol.signatures(unanswered),
            sender=protocol.treasury,
        )
    assert protocol.deposits.account(job, CLIENT, late).balance == 0
    passed = outcome(protocol, job, round_id, 2, Outcome.PASSED)
    protocol.charges.acquit(round_id, late, protocol.signatures(passed), sender=late)
    assert protocol.deposits.account(job, CLIENT, late).balance == DEPOSIT


def test_member_that_dissents_is_absent_or_says_two_things_pays(protocol):
    job = protocol.start_job()
    round_id = protocol.open_round(job)
    protocol.commit_roll(job, 0)
    protocol.publish_beacon(job, 0)
    protocol.attest(round_id, EVERYONE, members=(0, 2))
    protocol.attest(round_id, Verdict.of({0}), members=(1,))
    liar, opening = protocol.roster[1], protocol.opening(round_id)
    protocol.charges.penalise(round_id, liar, DISSENT, sender=protocol.treasury)
    assert protocol.deposits.account(job, MEMBER, liar).balance == STAKE - STAKE // 5

    absent = MemberFaultStatement(job, 0, opening, liar.address, ABSENCE)
    protocol.charges.penaliseCertified(
        round_id, liar, ABSENCE, protocol.signatures(absent, (0, 3)), sender=protocol.treasury
    )
    contents = [keccak(b"this"), keccak(b"that")]
    said = [
        protocol.signatures(MemberMessage(job, 0, opening, 1, content), (1,))[0]
        for content in contents
    ]
    protocol.charges.penaliseEquivocation(
        round_id, liar, 1, contents, said, sender=protocol.treasury
    )
    assert protocol.deposits.account(job, MEMBER, liar).balance == 0


def test_standby_takes_a_seat_for_the_next_round_and_all_are_paid(protocol):
    job, round_id = decided_round(protocol, EVERYONE)
    result = RoundResult(
        job, 0, protocol.opening(round_id), EVERYONE.hash, keccak(b"sum"), keccak(b"model 1")
    )
    protocol.rounds.finalise(
        round_id,
        result.aggregate_hash,
        result.model_hash,
        protocol.signatures(result),
        sender=protocol.treasury,
    )
    assert bytes(protocol.rounds.progress(job).modelHash) == keccak(b"model 1")

    standby = protocol.roster[3]
    change = SeatChange(job, 0, 1, standby.address)
    protocol.jobs.changeSeat(
        job, 1, standby, protocol.signatures(change, (0, 2)), sender=protocol.treasury
    )
    second = protocol.open_round(job)
    with ape.reverts(protocol.jobs.NotSeated):
        protocol.commit_roll(job, 1, members=(0, 1))
    protocol.commit_roll(job, 1, members=(0, 3))
    assert list(protocol.rounds.seatsOf(second))[1] == standby.address

    client, member = protocol.clients[1], protocol.roster[1]
    before = client.balance, member.balance
    protocol.rewards.claimContributions(
        client, [round_id], [EVERYONE.passes_bytes], sender=protocol.treasury
    )
    protocol.rewards.claimService(member, [round_id], sender=protocol.treasury)
    assert (client.balance, member.balance) == (before[0] + PAY.client, before[1] + PAY.member)
    with ape.reverts(protocol.rewards.AlreadyClaimed):
        protocol.rewards.claimService(member, [round_id], sender=protocol.treasury)
