"""What every action costs, from the receipts of two jobs on a real chain."""

from __future__ import annotations

from dataclasses import dataclass

from eth_utils.crypto import keccak

from opfl_chain.chain.bindings.types import MemberFault, Role
from opfl_chain.chain.receipt import Receipt
from opfl_chain.protocol.identifiers import ClientIndex, JobId, RoundId, job_and_number
from opfl_chain.protocol.statements import Acquittal, DeliveryReceipt
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.rehearsal.stage import Stage
from opfl_chain.rehearsal.terms import DEPOSIT, model_hash

CLIENTS = 8
BATCH_SIZES = (10, 100, 1_000, 10_000)


@dataclass(frozen=True)
class Cost:
    """The gas of one action, and how often it is due."""

    role: str
    action: str
    when: str
    gas: float

    @property
    def report(self) -> dict[str, str | float]:
        return {"role": self.role, "action": self.action, "when": self.when, "gas": self.gas}


class GasMeter:
    """Plays one of everything on a stage with `CLIENTS` clients, and notes the costs."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._costs: list[Cost] = []

    def measure(self) -> list[Cost]:
        job = self._measure_start()
        self._measure_honest_round(job)
        self._measure_faulty_round(job)
        self._measure_leaving(job)
        return self._costs

    def _measure_start(self) -> JobId:
        stage = self._stage
        self._note("member", "register BLS key", "once", stage.register_keys()[0])
        job, created = stage.create_job(audit_rate=1.0, rounds=8)
        self._note("operator", "create job", "per job", created)
        self._note("member", "stake", "per job", stage.join(job)[-1])
        self._note("client", "lock deposit, record data set root", "per job", stage.enrol(job)[-1])
        call = stage.contracts.jobs.top_up_deposit(job, value=DEPOSIT)
        self._note("client", "top up deposit", "when short", stage.send(stage.clients[0], call))
        return job

    def _measure_honest_round(self, job: JobId) -> None:
        """A round as it should be: one direct commitment each, one aggregate signature."""
        stage = self._stage
        round_id, opened = stage.open_round(job)
        self._note("operator", "open first round (adds up the keys)", "per job", opened)
        committed = stage.commit(round_id, stage.clients)
        self._note("client", "commit gradient, first time", "per job", committed[0])
        published = stage.publish_beacon(round_id)
        self._note("operator", "publish beacon, aggregate", "per round", published)
        everyone = Verdict.of({ClientIndex(i) for i in range(CLIENTS)}, {})
        attested = stage.attest(round_id, everyone, (0, 1, 2))
        self._note("member", "attest verdict, first", "per round", attested[0])
        self._note("member", "attest verdict, deciding", "per round", attested[1])
        self._note("member", "attest verdict, last", "per round", attested[2])
        self._note("operator", "finalise", "per round", self._finalise(round_id))

    def _measure_faulty_round(self, job: JobId) -> None:
        """A round with a batch, partial signatures, slashes, vetoes and a dissenting member."""
        stage = self._stage
        slashing = stage.contracts.slashing
        round_id, opened = stage.open_round(job)
        number = job_and_number(round_id)[1]
        self._note("operator", "open round", "per round", opened)
        direct, relayed = stage.clients[:4], stage.clients[4:]
        committed = stage.commit(round_id, direct)
        self._note("client", "commit gradient", "per round", committed[-1])
        proofs, batch = stage.commit_batch(round_id, relayed)
        self._note("relayer", "commit batch", "per round", batch)
        for size in BATCH_SIZES:
            action = f"per client, {size:,} in a batch"
            self._costs.append(Cost("relayer", action, "per round", batch.gas_used / size))
        partials = stage.publish_partials(round_id, (0, 1, 2))
        self._note("member", "publish partial signature", "when late", partials[1])
        self._note("member", "publish the last partial signature", "when late", partials[2])

        verdict = Verdict.of(
            {ClientIndex(0), ClientIndex(5), ClientIndex(6), ClientIndex(7)},
            {
                ClientIndex(1): FaultReason.REPLAY_OUTSIDE,
                ClientIndex(2): FaultReason.NOT_DELIVERED,
                ClientIndex(3): FaultReason.REPLAY_OUTSIDE,
                ClientIndex(4): FaultReason.COMMITMENT_MISMATCH,
            },
        )
        stage.attest(round_id, verdict, (0, 1))
        stage.attest(round_id, Verdict.of({ClientIndex(0)}, {}), (2,))
        dissent = stage.penalise(round_id, stage.members[2], MemberFault.VERDICT_DISSENT)
        self._note("operator", "penalise a member", "per fault", dissent)

        requested = stage.request_slash(round_id, stage.clients[1], verdict, 0)
        self._note("operator", "request slash, direct commitment", "per fault", requested)
        late, unlucky, batched = stage.clients[2:5]
        stage.request_slash(round_id, late, verdict, 1)
        stage.request_slash(round_id, unlucky, verdict, 2)
        requested = stage.request_slash(round_id, batched, verdict, 3, proofs[batched.address])
        self._note("operator", "request slash, batched commitment", "per fault", requested)

        receipts = stage.two_signatures(DeliveryReceipt(job, number, late.address, audited=True))
        veto = slashing.veto_with_receipts(round_id, late.address, receipts)
        self._note("client", "veto with receipts", "when accused", stage.send(late, veto))
        acquittals = stage.two_signatures(Acquittal(job, number, unlucky.address))
        veto = slashing.veto_with_acquittals(round_id, unlucky.address, acquittals)
        self._note(
            "member", "veto with acquittals", "when wrong", stage.send(stage.members[0], veto)
        )
        executed = stage.execute_slash(round_id, stage.clients[1])
        self._note("operator", "execute slash", "per fault", executed)

    def _measure_leaving(self, job: JobId) -> None:
        stage = self._stage
        deposits = stage.contracts.deposits
        leaver = stage.clients[0]
        unbonded = stage.send(leaver, stage.contracts.jobs.unbond_deposit(job))
        self._note("client", "unbond", "per job", unbonded)
        stage.mine_past(deposits.account(job, Role.CLIENT, leaver.address).withdrawable_at)
        withdrawn = stage.send(leaver, deposits.withdraw(job, Role.CLIENT))
        self._note("client", "withdraw deposit", "per job", withdrawn)
        paid = stage.send(stage.members[0], deposits.withdraw_credit(stage.members[0].address))
        self._note("member", "withdraw credit", "at will", paid)

    def _finalise(self, round_id: RoundId) -> Receipt:
        return self._stage.finalise(round_id, keccak(text="aggregate"), model_hash(1))

    def _note(self, role: str, action: str, when: str, receipt: Receipt) -> None:
        self._costs.append(Cost(role, action, when, receipt.gas_used))
