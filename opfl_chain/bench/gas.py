"""Gas cost of every action, from the receipts of a job on a real chain."""

from __future__ import annotations

from dataclasses import dataclass

from eth_utils.crypto import keccak

from opfl_chain.chain.bindings.types import MemberFault, Role
from opfl_chain.chain.contracts.contract import Receipt
from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.contract_demo.contract_job import ContractJob, model_hash
from opfl_chain.protocol.identifiers import ClientIndex, JobId, RoundId, job_and_number
from opfl_chain.protocol.statements import Acquittal, DeliveryReceipt
from opfl_chain.protocol.verdict import FaultReason, Verdict

CLIENTS = 8
BATCH_SIZES = (10, 100, 1_000, 10_000)


@dataclass(frozen=True)
class GasCost:
    """The gas cost of one action, and how often it is due."""

    role: str
    action: str
    when: str
    gas: float

    @property
    def report(self) -> dict[str, str | float]:
        return {"role": self.role, "action": self.action, "when": self.when, "gas": self.gas}


class GasMeter:
    """Performs every action with `CLIENTS` clients, and records the costs."""

    def __init__(self, actors: ContractJob) -> None:
        self._actors = actors
        self._costs: list[GasCost] = []

    def measure(self) -> list[GasCost]:
        job = self._measure_start()
        self._measure_honest_round(job)
        self._measure_faulty_round(job)
        self._measure_leaving(job)
        return self._costs

    def _measure_start(self) -> JobId:
        actors = self._actors
        self._note("member", "register BLS key", "once", actors.register_keys()[0])
        job, created = actors.create_job(audit_rate=1.0, rounds=8)
        self._note("operator", "create job", "per job", created)
        self._note("member", "stake", "per job", actors.join(job)[-1])
        self._note("client", "lock deposit, record data set root", "per job", actors.enrol(job)[-1])
        call = actors.contracts.jobs.top_up_deposit(job, value=DEPOSIT)
        self._note("client", "top up deposit", "when short", actors.send(actors.clients[0], call))
        return job

    def _measure_honest_round(self, job: JobId) -> None:
        """Measure an honest round: one direct commitment each, one aggregate signature."""
        actors = self._actors
        round_id, opened = actors.open_round(job)
        self._note("operator", "open first round (adds up the keys)", "per job", opened)
        committed = actors.commit(round_id, actors.clients)
        self._note("client", "commit gradient, first time", "per job", committed[0])
        published = actors.publish_beacon(round_id)
        self._note("operator", "publish beacon, aggregate", "per round", published)
        everyone = Verdict.of({ClientIndex(i) for i in range(CLIENTS)}, {})
        attested = actors.attest(round_id, everyone, (0, 1, 2))
        self._note("member", "attest verdict, first", "per round", attested[0])
        self._note("member", "attest verdict, deciding", "per round", attested[1])
        self._note("member", "attest verdict, last", "per round", attested[2])
        self._note("operator", "finalise", "per round", self._finalise(round_id))

    def _measure_faulty_round(self, job: JobId) -> None:
        """Measure a round with a batch, partial signatures, slashes, vetoes and a dissenter."""
        actors = self._actors
        slashing = actors.contracts.slashing
        round_id, opened = actors.open_round(job)
        number = job_and_number(round_id)[1]
        self._note("operator", "open round", "per round", opened)
        direct, relayed = actors.clients[:4], actors.clients[4:]
        committed = actors.commit(round_id, direct)
        self._note("client", "commit gradient", "per round", committed[-1])
        proofs, batch = actors.commit_batch(round_id, relayed)
        self._note("relayer", "commit batch", "per round", batch)
        for size in BATCH_SIZES:
            action = f"per client, {size:,} in a batch"
            self._costs.append(GasCost("relayer", action, "per round", batch.gas_used / size))
        partials = actors.publish_partials(round_id, (0, 1, 2))
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
        actors.attest(round_id, verdict, (0, 1))
        actors.attest(round_id, Verdict.of({ClientIndex(0)}, {}), (2,))
        dissent = actors.penalise(round_id, actors.members[2], MemberFault.VERDICT_DISSENT)
        self._note("operator", "penalise a member", "per fault", dissent)

        requested = actors.request_slash(round_id, actors.clients[1], verdict, 0)
        self._note("operator", "request slash, direct commitment", "per fault", requested)
        late, unlucky, batched = actors.clients[2:5]
        actors.request_slash(round_id, late, verdict, 1)
        actors.request_slash(round_id, unlucky, verdict, 2)
        requested = actors.request_slash(round_id, batched, verdict, 3, proofs[batched.address])
        self._note("operator", "request slash, batched commitment", "per fault", requested)

        receipts = actors.two_signatures(DeliveryReceipt(job, number, late.address, audited=True))
        veto = slashing.veto_with_receipts(round_id, late.address, receipts)
        self._note("client", "veto with receipts", "when accused", actors.send(late, veto))
        acquittals = actors.two_signatures(Acquittal(job, number, unlucky.address))
        veto = slashing.veto_with_acquittals(round_id, unlucky.address, acquittals)
        self._note(
            "member",
            "veto with acquittals",
            "when wrong",
            actors.send(actors.members[0], veto),
        )
        executed = actors.execute_slash(round_id, actors.clients[1])
        self._note("operator", "execute slash", "per fault", executed)

    def _measure_leaving(self, job: JobId) -> None:
        actors = self._actors
        deposits = actors.contracts.deposits
        leaver = actors.clients[0]
        unbonded = actors.send(leaver, actors.contracts.jobs.unbond_deposit(job))
        self._note("client", "unbond", "per job", unbonded)
        actors.mine_past(deposits.account(job, Role.CLIENT, leaver.address).withdrawable_at)
        withdrawn = actors.send(leaver, deposits.withdraw(job, Role.CLIENT))
        self._note("client", "withdraw deposit", "per job", withdrawn)
        paid = actors.send(actors.members[0], deposits.withdraw_credit(actors.members[0].address))
        self._note("member", "withdraw credit", "at will", paid)

    def _finalise(self, round_id: RoundId) -> Receipt:
        return self._actors.finalise(round_id, keccak(text="aggregate"), model_hash(1))

    def _note(self, role: str, action: str, when: str, receipt: Receipt) -> None:
        self._costs.append(GasCost(role, action, when, receipt.gas_used))
