"""A job in which everything happens that a trail can show, played on a chain."""

from eth_utils.crypto import keccak

from opfl_chain.chain import bls
from opfl_chain.chain.bindings.types import MemberFault, Role
from opfl_chain.protocol.identifiers import ClientIndex, job_and_number
from opfl_chain.protocol.statements import Acquittal, DeliveryReceipt
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.rehearsal.terms import DEPOSIT, model_hash

CLIENTS = 8
ROUNDS = 5


def verdict_of(passed, faults):
    return Verdict.of(
        {ClientIndex(i) for i in passed}, {ClientIndex(i): why for i, why in faults.items()}
    )


class PlayedJob:
    """Same keys every time, so that the same clients are audited in every run."""

    def __init__(self, stage):
        self.stage = stage
        stage.keys = [bls.SecretKey((7 + i).to_bytes(32, "big")) for i in range(3)]
        stage.register_keys()
        self.job, _ = stage.create_job(audit_rate=0.5, rounds=ROUNDS)
        stage.join(self.job)
        stage.enrol(self.job)
        jobs = stage.contracts.jobs
        stage.send(stage.clients[6], jobs.replace_dataset_root(self.job, keccak(text="better")))

    def play(self):
        self._honest_round()
        self._faulty_round()
        self._withheld_round()
        self._void_round()
        self._last_round()
        self._leave()
        return self

    def _open(self):
        round_id, _ = self.stage.open_round(self.job)
        return round_id, job_and_number(round_id)[1]

    def _finalise(self, round_id, number):
        self.stage.finalise(round_id, keccak(text=f"sum {number}"), model_hash(number + 1))

    def _honest_round(self):
        round_id, number = self._open()
        self.stage.commit(round_id, self.stage.clients)
        self.stage.publish_beacon(round_id)
        self.stage.attest(round_id, verdict_of(range(CLIENTS), {}), (0, 1, 2))
        self._finalise(round_id, number)

    def _faulty_round(self):
        """A batch, a beacon of partial signatures, two slashes, a veto, a dissenting member."""
        stage, clients = self.stage, self.stage.clients
        round_id, number = self._open()
        stage.commit(round_id, clients[:2])
        proofs, _ = stage.commit_batch(round_id, clients[4:])
        stage.commit(round_id, clients[2:4])
        stage.publish_partials(round_id, (0, 1, 2))
        faults = {
            1: FaultReason.COMMITMENT_MISMATCH,
            2: FaultReason.NOT_DELIVERED,
            4: FaultReason.COMMITMENT_MISMATCH,
        }
        verdict = verdict_of({0, 3, 5, 6, 7}, faults)
        stage.attest(round_id, verdict, (0,))
        stage.attest(round_id, verdict_of({0}, {}), (2,))
        stage.attest(round_id, verdict, (1,))
        stage.penalise(round_id, stage.members[2], MemberFault.VERDICT_DISSENT)
        self._finalise(round_id, number)
        stage.request_slash(round_id, clients[1], verdict, 0)
        stage.request_slash(round_id, clients[2], verdict, 1)
        stage.request_slash(round_id, clients[4], verdict, 2, proofs[clients[4].address])
        late = clients[2].address
        audited = stage.contracts.beacon.is_audited(round_id, late)
        receipts = stage.two_signatures(DeliveryReceipt(self.job, number, late, audited))
        veto = stage.contracts.slashing.veto_with_receipts(round_id, late, receipts)
        stage.send(clients[2], veto)
        stage.execute_slash(round_id, clients[1])
        stage.execute_slash(round_id, clients[4])
        top_up = stage.contracts.jobs.top_up_deposit(self.job, value=DEPOSIT // 2 + 1)
        stage.send(clients[1], top_up)

    def _withheld_round(self):
        """A member withholds its part and is silent, so all are audited; a deposit runs dry."""
        stage, clients = self.stage, self.stage.clients
        round_id, number = self._open()
        stage.commit(round_id, [clients[i] for i in (0, 1, 3, 5)])
        proofs, _ = stage.commit_batch(round_id, [clients[4]])
        stage.publish_partials(round_id, (0, 1))
        faults = dict.fromkeys((3, 4, 5), FaultReason.REPLAY_OUTSIDE)
        verdict = verdict_of({0, 1}, faults)
        stage.attest(round_id, verdict, (0, 1))
        stage.penalise(round_id, stage.members[2], MemberFault.BEACON_WITHHELD)
        stage.request_slash(round_id, clients[3], verdict, 0)
        stage.request_slash(round_id, clients[4], verdict, 1, proofs[clients[4].address])
        stage.request_slash(round_id, clients[5], verdict, 2)
        acquittals = stage.two_signatures(Acquittal(self.job, number, clients[5].address))
        veto = stage.contracts.slashing.veto_with_acquittals(
            round_id, clients[5].address, acquittals
        )
        stage.send(stage.members[0], veto)
        stage.execute_slash(round_id, clients[3])
        stage.execute_slash(round_id, clients[4])
        self._finalise(round_id, number)
        stage.mine_past(stage.contracts.jobs.schedule(round_id).attest)
        stage.penalise(round_id, stage.members[2], MemberFault.VERDICT_SILENCE)

    def _void_round(self):
        stage = self.stage
        round_id, _ = self._open()
        stage.commit(round_id, [stage.clients[0], stage.clients[1]])
        stage.publish_beacon(round_id)
        stage.attest(round_id, verdict_of({0}, {}), (0,))
        stage.attest(round_id, verdict_of({0, 1}, {}), (1,))
        self._void(round_id, stage.contracts.jobs.schedule(round_id).attest)

    def _last_round(self):
        """Decided and not finalised; its slash is still pending at the end."""
        stage = self.stage
        round_id, _ = self._open()
        stage.commit(round_id, [stage.clients[0], stage.clients[1]])
        stage.publish_beacon(round_id)
        verdict = verdict_of({0}, {1: FaultReason.COMMITMENT_MISMATCH})
        stage.attest(round_id, verdict, (0, 1, 2))
        stage.request_slash(round_id, stage.clients[1], verdict, 0)
        self._void(round_id, stage.contracts.jobs.schedule(round_id).finalise)

    def _void(self, round_id, deadline):
        self.stage.mine_past(deadline)
        self.stage.send(self.stage.operator, self.stage.contracts.jobs.void_round(round_id))

    def _leave(self):
        stage = self.stage
        jobs, deposits = stage.contracts.jobs, stage.contracts.deposits
        leaving = [stage.clients[0], stage.clients[2]]
        for client in leaving:
            stage.send(client, jobs.unbond_deposit(self.job))
        member = stage.members[0]
        unbonded = stage.send(member, jobs.unbond_stake(self.job))
        stage.mine_past(unbonded.block_number + 500)
        for client in leaving:
            stage.send(client, deposits.withdraw(self.job, Role.CLIENT))
        stage.send(member, deposits.withdraw(self.job, Role.MEMBER))
        for account in (member, stage.operator):
            stage.send(stage.operator, deposits.withdraw_credit(account.address))
