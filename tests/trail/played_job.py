"""A job on a real chain that produces every kind of event of a trail."""

from eth_utils.crypto import keccak

from opfl_chain.chain import bls
from opfl_chain.chain.bindings.types import MemberFault, Role
from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.contract_demo.contract_job import model_hash
from opfl_chain.protocol.identifiers import ClientIndex, job_and_number
from opfl_chain.protocol.statements import Acquittal, DeliveryReceipt
from opfl_chain.protocol.verdict import FaultReason, Verdict

CLIENTS = 8
ROUNDS = 5


def verdict_of(passed, faults):
    return Verdict.of(
        {ClientIndex(i) for i in passed}, {ClientIndex(i): why for i, why in faults.items()}
    )


class PlayedJob:
    """Same keys every time, so that the same clients are audited in every run."""

    def __init__(self, rehearsal):
        self.rehearsal = rehearsal
        rehearsal.keys = [bls.SecretKey((7 + i).to_bytes(32, "big")) for i in range(3)]
        rehearsal.register_keys()
        self.job, _ = rehearsal.create_job(audit_rate=0.5, rounds=ROUNDS)
        rehearsal.join(self.job)
        rehearsal.enrol(self.job)
        jobs = rehearsal.contracts.jobs
        rehearsal.send(
            rehearsal.clients[6], jobs.replace_dataset_root(self.job, keccak(text="better"))
        )

    def play(self):
        self._honest_round()
        self._faulty_round()
        self._withheld_round()
        self._void_round()
        self._last_round()
        self._leave()
        return self

    def _open(self):
        round_id, _ = self.rehearsal.open_round(self.job)
        return round_id, job_and_number(round_id)[1]

    def _finalise(self, round_id, number):
        self.rehearsal.finalise(round_id, keccak(text=f"sum {number}"), model_hash(number + 1))

    def _honest_round(self):
        round_id, number = self._open()
        self.rehearsal.commit(round_id, self.rehearsal.clients)
        self.rehearsal.publish_beacon(round_id)
        self.rehearsal.attest(round_id, verdict_of(range(CLIENTS), {}), (0, 1, 2))
        self._finalise(round_id, number)

    def _faulty_round(self):
        """A batch, a beacon of partial signatures, two slashes, a veto, a dissenting member."""
        rehearsal, clients = self.rehearsal, self.rehearsal.clients
        round_id, number = self._open()
        rehearsal.commit(round_id, clients[:2])
        proofs, _ = rehearsal.commit_batch(round_id, clients[4:])
        rehearsal.commit(round_id, clients[2:4])
        rehearsal.publish_partials(round_id, (0, 1, 2))
        faults = {
            1: FaultReason.COMMITMENT_MISMATCH,
            2: FaultReason.NOT_DELIVERED,
            4: FaultReason.COMMITMENT_MISMATCH,
        }
        verdict = verdict_of({0, 3, 5, 6, 7}, faults)
        rehearsal.attest(round_id, verdict, (0,))
        rehearsal.attest(round_id, verdict_of({0}, {}), (2,))
        rehearsal.attest(round_id, verdict, (1,))
        rehearsal.penalise(round_id, rehearsal.members[2], MemberFault.VERDICT_DISSENT)
        self._finalise(round_id, number)
        rehearsal.request_slash(round_id, clients[1], verdict, 0)
        rehearsal.request_slash(round_id, clients[2], verdict, 1)
        rehearsal.request_slash(round_id, clients[4], verdict, 2, proofs[clients[4].address])
        late = clients[2].address
        audited = rehearsal.contracts.beacon.is_audited(round_id, late)
        receipts = rehearsal.two_signatures(DeliveryReceipt(self.job, number, late, audited))
        veto = rehearsal.contracts.slashing.veto_with_receipts(round_id, late, receipts)
        rehearsal.send(clients[2], veto)
        rehearsal.execute_slash(round_id, clients[1])
        rehearsal.execute_slash(round_id, clients[4])
        top_up = rehearsal.contracts.jobs.top_up_deposit(self.job, value=DEPOSIT // 2 + 1)
        rehearsal.send(clients[1], top_up)

    def _withheld_round(self):
        """A member withholds its part and is silent, so all are audited; a deposit runs dry."""
        rehearsal, clients = self.rehearsal, self.rehearsal.clients
        round_id, number = self._open()
        rehearsal.commit(round_id, [clients[i] for i in (0, 1, 3, 5)])
        proofs, _ = rehearsal.commit_batch(round_id, [clients[4]])
        rehearsal.publish_partials(round_id, (0, 1))
        faults = dict.fromkeys((3, 4, 5), FaultReason.REPLAY_OUTSIDE)
        verdict = verdict_of({0, 1}, faults)
        rehearsal.attest(round_id, verdict, (0, 1))
        rehearsal.penalise(round_id, rehearsal.members[2], MemberFault.BEACON_WITHHELD)
        rehearsal.request_slash(round_id, clients[3], verdict, 0)
        rehearsal.request_slash(round_id, clients[4], verdict, 1, proofs[clients[4].address])
        rehearsal.request_slash(round_id, clients[5], verdict, 2)
        acquittals = rehearsal.two_signatures(Acquittal(self.job, number, clients[5].address))
        veto = rehearsal.contracts.slashing.veto_with_acquittals(
            round_id, clients[5].address, acquittals
        )
        rehearsal.send(rehearsal.members[0], veto)
        rehearsal.execute_slash(round_id, clients[3])
        rehearsal.execute_slash(round_id, clients[4])
        self._finalise(round_id, number)
        rehearsal.mine_past(rehearsal.contracts.jobs.schedule(round_id).attest)
        rehearsal.penalise(round_id, rehearsal.members[2], MemberFault.VERDICT_SILENCE)

    def _void_round(self):
        rehearsal = self.rehearsal
        round_id, _ = self._open()
        rehearsal.commit(round_id, [rehearsal.clients[0], rehearsal.clients[1]])
        rehearsal.publish_beacon(round_id)
        rehearsal.attest(round_id, verdict_of({0}, {}), (0,))
        rehearsal.attest(round_id, verdict_of({0, 1}, {}), (1,))
        self._void(round_id, rehearsal.contracts.jobs.schedule(round_id).attest)

    def _last_round(self):
        """Decided and not finalised; its slash is still pending at the end."""
        rehearsal = self.rehearsal
        round_id, _ = self._open()
        rehearsal.commit(round_id, [rehearsal.clients[0], rehearsal.clients[1]])
        rehearsal.publish_beacon(round_id)
        verdict = verdict_of({0}, {1: FaultReason.COMMITMENT_MISMATCH})
        rehearsal.attest(round_id, verdict, (0, 1, 2))
        rehearsal.request_slash(round_id, rehearsal.clients[1], verdict, 0)
        self._void(round_id, rehearsal.contracts.jobs.schedule(round_id).finalise)

    def _void(self, round_id, deadline):
        self.rehearsal.mine_past(deadline)
        self.rehearsal.send(
            self.rehearsal.operator, self.rehearsal.contracts.jobs.void_round(round_id)
        )

    def _leave(self):
        rehearsal = self.rehearsal
        jobs, deposits = rehearsal.contracts.jobs, rehearsal.contracts.deposits
        leaving = [rehearsal.clients[0], rehearsal.clients[2]]
        for client in leaving:
            rehearsal.send(client, jobs.unbond_deposit(self.job))
        member = rehearsal.members[0]
        unbonded = rehearsal.send(member, jobs.unbond_stake(self.job))
        rehearsal.mine_past(unbonded.block_number + 500)
        for client in leaving:
            rehearsal.send(client, deposits.withdraw(self.job, Role.CLIENT))
        rehearsal.send(member, deposits.withdraw(self.job, Role.MEMBER))
        for account in (member, rehearsal.operator):
            rehearsal.send(rehearsal.operator, deposits.withdraw_credit(account.address))
