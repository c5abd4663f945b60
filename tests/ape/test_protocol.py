"""Complete jobs on Anvil: values computed in Python must be accepted by the contracts."""

import ape
from eth_utils.crypto import keccak
from harness import DEPOSIT, STAKE, sign
from opfl_chain.protocol.accumulator import (
    BatchCommitment,
    DirectCommitment,
    accumulate_all,
    batch_tree,
    initial_accumulator,
)

from opfl_chain.protocol.economics import split_slash
from opfl_chain.protocol.randomness import audit_rate_of, is_audited
from opfl_chain.protocol.statements import (
    Acquittal,
    DeliveryReceipt,
    GradientCommitment,
    RoundResult,
)
from opfl_chain.protocol.verdict import FaultReason, Verdict

NO_PROOF = (bytes(32), [], b"")
CLIENT, MEMBER = 0, 1
DISSENT = 1


def commit_all(protocol, round_id):
    for client in protocol.clients:
        protocol.jobs.commitGradient(round_id, keccak(client.address.encode()), sender=client)


def decided_round(protocol, faults):
    """Run a round in which everyone committed and `faults` were decided."""
    job = protocol.start_job()
    round_id = protocol.open_round(job)
    commit_all(protocol, round_id)
    protocol.publish_beacon(job, 0)
    passed = set(range(len(protocol.clients))) - set(faults)
    verdict = Verdict.of(passed, faults)
    protocol.mine_past(protocol.jobs.schedule(round_id).deliver)
    protocol.attest(round_id, verdict)
    return job, round_id, verdict


def request_slash(protocol, round_id, client, verdict):
    return protocol.slashing.request(
        round_id,
        protocol.clients[client],
        (verdict.passes_bytes, verdict.faults_bytes),
        0,
        NO_PROOF,
        sender=protocol.treasury,
    )


def test_accumulator_and_sampling_agree_with_python(protocol):
    job = protocol.start_job(audit_probability=0.5)
    round_id = protocol.open_round(job)
    model = keccak(b"model 0")
    initial = initial_accumulator(protocol.chain.chain_id, protocol.jobs.address, job, 0, model)
    client = protocol.clients[0]
    protocol.jobs.commitGradient(round_id, keccak(b"gradient"), sender=client)
    protocol.jobs.commitBatch(round_id, keccak(b"root"), 7, sender=protocol.relayer)
    expected = accumulate_all(
        initial,
        [
            DirectCommitment(client.address, keccak(b"gradient")),
            BatchCommitment(keccak(b"root"), 7),
        ],
    )
    assert bytes(protocol.jobs.accumulator(round_id)) == expected
    assert bytes(protocol.beacon.message(round_id)) == protocol.message(job, 0)

    protocol.publish_beacon(job, 0)
    seed = bytes(protocol.beacon.seedOf(round_id))
    rate = audit_rate_of(0.5)
    for account in [*protocol.clients, *protocol.members, protocol.treasury]:
        expected_audit = is_audited(seed, account.address, rate)
        assert protocol.beacon.isAudited(round_id, account) == expected_audit


def test_failed_replay_costs_the_deposit_and_honest_clients_withdraw_theirs(protocol):
    job, round_id, verdict = decided_round(protocol, {3: FaultReason.REPLAY_OUTSIDE})
    cheat = protocol.clients[3]
    request_slash(protocol, round_id, 3, verdict)
    with ape.reverts(protocol.slashing.VetoPhaseOpen):
        protocol.slashing.execute(round_id, cheat, sender=protocol.treasury)
    protocol.mine_past(protocol.slashing.slashOf(round_id, cheat).executableAt)
    protocol.slashing.execute(round_id, cheat, sender=protocol.treasury)

    split = split_slash(DEPOSIT, 5000, 2000, 3)
    assert protocol.deposits.burned() == split.burn
    assert protocol.deposits.creditOf(protocol.treasury) == split.treasury
    assert protocol.deposits.account(job, CLIENT, cheat).balance == 0
    for member in protocol.members:
        before = member.balance
        protocol.deposits.withdrawCredit(member, sender=protocol.treasury)
        assert member.balance == before + split.each_member

    honest = protocol.clients[0]
    protocol.jobs.unbondDeposit(job, sender=honest)
    with ape.reverts(protocol.deposits.StillUnbonding):
        protocol.deposits.withdraw(job, CLIENT, sender=honest)
    protocol.mine_past(protocol.deposits.account(job, CLIENT, honest).withdrawableAt)
    before = protocol.deposits.balance
    protocol.deposits.withdraw(job, CLIENT, sender=honest)
    assert protocol.deposits.balance == before - DEPOSIT


def test_receipts_of_two_members_veto_not_delivered(protocol):
    job, round_id, verdict = decided_round(protocol, {1: FaultReason.NOT_DELIVERED})
    accused = protocol.clients[1]
    request_slash(protocol, round_id, 1, verdict)
    unaudited = DeliveryReceipt(job, 0, accused.address, audited=False)
    with ape.reverts():
        protocol.slashing.vetoWithReceipts(
            round_id, accused, protocol.signatures(unaudited), sender=accused
        )
    receipt = DeliveryReceipt(job, 0, accused.address, audited=True)
    protocol.slashing.vetoWithReceipts(
        round_id, accused, protocol.signatures(receipt), sender=accused
    )
    assert protocol.deposits.account(job, CLIENT, accused).balance == DEPOSIT


def test_acquittals_of_two_members_veto_a_failed_replay(protocol):
    job, round_id, verdict = decided_round(protocol, {2: FaultReason.REPLAY_OUTSIDE})
    accused = protocol.clients[2]
    request_slash(protocol, round_id, 2, verdict)
    acquittal = Acquittal(job, 0, accused.address)
    with ape.reverts(protocol.jobs.SameSigner):
        protocol.slashing.vetoWithAcquittals(
            round_id, accused, protocol.signatures(acquittal, (0, 0)), sender=accused
        )
    protocol.slashing.vetoWithAcquittals(
        round_id, accused, protocol.signatures(acquittal), sender=accused
    )
    assert protocol.deposits.account(job, CLIENT, accused).balance == DEPOSIT


def test_slash_on_a_batch_leaf_needs_path_and_signature(protocol):
    job = protocol.start_job()
    round_id = protocol.open_round(job)
    commitments = [(client.address, keccak(client.address.encode())) for client in protocol.clients]
    tree = batch_tree(job, 0, commitments)
    protocol.jobs.commitBatch(round_id, tree.root, len(commitments), sender=protocol.relayer)
    protocol.publish_beacon(job, 0)
    verdict = Verdict.of({0, 1, 2}, {3: FaultReason.COMMITMENT_MISMATCH})
    protocol.attest(round_id, verdict)

    client, commitment = protocol.clients[3], commitments[3][1]
    statement = GradientCommitment(job, 0, client.address, commitment)
    signature = sign(client, statement.digest(protocol.domain))
    foreign = sign(protocol.clients[2], statement.digest(protocol.domain))
    encoded = (verdict.passes_bytes, verdict.faults_bytes)
    arguments = (round_id, client, encoded, 0)
    with ape.reverts(protocol.slashing.NotInBatch):
        protocol.slashing.request(
            *arguments, (commitment, tree.proof(2), signature), sender=protocol.treasury
        )
    with ape.reverts(protocol.slashing.NotSignedByClient):
        protocol.slashing.request(
            *arguments, (commitment, tree.proof(3), foreign), sender=protocol.treasury
        )
    protocol.slashing.request(
        *arguments, (commitment, tree.proof(3), signature), sender=protocol.treasury
    )
    assert protocol.deposits.account(job, CLIENT, client).balance == DEPOSIT // 2


def test_dissenting_member_pays_and_the_round_is_finalised(protocol):
    job = protocol.start_job()
    round_id = protocol.open_round(job)
    commit_all(protocol, round_id)
    protocol.publish_beacon(job, 0)
    verdict = Verdict.of({0, 1, 2, 3}, {})
    protocol.attest(round_id, verdict, members=(0, 2))
    protocol.attest(round_id, Verdict.of({0}, {}), members=(1,))
    liar = protocol.members[1]
    protocol.slashing.penaliseMember(round_id, liar, DISSENT, sender=protocol.treasury)
    assert protocol.deposits.account(job, MEMBER, liar).balance == STAKE - STAKE // 8

    result = RoundResult(job, 0, verdict.hash, keccak(b"sum"), keccak(b"model 1"))
    protocol.jobs.finalise(
        round_id,
        result.aggregate_hash,
        result.model_hash,
        protocol.signatures(result),
        sender=protocol.treasury,
    )
    assert bytes(protocol.jobs.progress(job).modelHash) == keccak(b"model 1")


def test_late_second_and_foreign_commitments_are_refused(protocol):
    job = protocol.start_job()
    round_id = protocol.open_round(job)
    client = protocol.clients[0]
    protocol.jobs.commitGradient(round_id, keccak(b"one"), sender=client)
    with ape.reverts(protocol.jobs.AlreadyCommitted):
        protocol.jobs.commitGradient(round_id, keccak(b"two"), sender=client)
    with ape.reverts(protocol.jobs.ClientNotActive):
        protocol.jobs.commitGradient(round_id, keccak(b"two"), sender=protocol.treasury)
    protocol.mine_past(protocol.jobs.schedule(round_id).commit)
    with ape.reverts(protocol.jobs.CommitPhaseOver):
        protocol.jobs.commitGradient(round_id, keccak(b"two"), sender=protocol.clients[1])


def test_gas_of_commitments_stays_within_bounds(protocol):
    job = protocol.start_job()
    round_id = protocol.open_round(job)
    used = [
        protocol.jobs.commitGradient(round_id, keccak(client.address.encode()), sender=client)
        for client in protocol.clients
    ]
    assert max(receipt.gas_used for receipt in used) <= 35_000
    batch = protocol.jobs.commitBatch(round_id, keccak(b"root"), 100, sender=protocol.relayer)
    assert batch.gas_used / 100 < 1_000
