"""One client cheats in every round until an audit hits it, and loses its deposit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eth_utils.crypto import keccak

from opfl_chain.chain.bindings.events import BeaconPublished
from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.receipt import Receipt
from opfl_chain.protocol.identifiers import ClientIndex, JobId, job_and_number
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.rehearsal.stage import COMMITTEE, Actor, Stage
from opfl_chain.rehearsal.terms import DEPOSIT, STAKE, model_hash

# At the lowest rate that the command accepts, 0.05, the cheat escapes all with probability 2e-6.
MOST_ROUNDS = 256

Narrator = Callable[[str, str], None]


@dataclass
class Account:
    """What became of one participant's money, in wei."""

    name: str
    role: str
    cheat: bool
    deposit_before: int
    deposit_after: int = 0
    earned: int = 0
    audited: int = 0
    failed: int = 0
    slashed: int = 0


@dataclass
class Outcome:
    """What the demo shows at its end."""

    rounds: int = 0
    seconds: float = 0.0
    burned: int = 0
    treasury: int = 0
    withdrawn: int = 0
    held: int = 0
    gas: dict[str, int] = field(default_factory=dict)
    accounts: list[Account] = field(default_factory=list)

    @property
    def report(self) -> dict[str, Any]:
        """The outcome as `--json` writes it."""
        clients = [account for account in self.accounts if account.role == "client"]
        cheats = [client for client in clients if client.cheat]
        honest = [client for client in clients if not client.cheat]
        return {
            "rounds": self.rounds,
            "clients": [vars(client) for client in clients],
            "members": [vars(a) for a in self.accounts if a.role == "member"],
            "honest_slashed": sum(client.slashed > 0 for client in honest),
            "cheats_audited": sum(client.audited > 0 for client in cheats),
            "cheats_slashed": sum(client.slashed > 0 for client in cheats),
            "burned_wei": self.burned,
            "treasury_wei": self.treasury,
            "withdrawn_wei": self.withdrawn,
            "held_wei": self.held,
            "gas": self.gas,
            "seconds": round(self.seconds, 2),
        }


class SlashingDemo:
    """Runs the demo on a stage and tells a narrator what happens."""

    def __init__(self, stage: Stage, audit_rate: float, tell: Narrator) -> None:
        self._stage = stage
        self._audit_rate = audit_rate
        self._tell = tell
        self._cheat = len(stage.clients) - 1
        self._outcome = Outcome()
        self._outcome.accounts = [
            Account(client.name, "client", cheat=i == self._cheat, deposit_before=DEPOSIT)
            for i, client in enumerate(stage.clients)
        ] + [
            Account(member.name, "member", cheat=False, deposit_before=STAKE)
            for member in stage.members
        ]

    def run(self) -> Outcome:
        """Deposit, commit, audit, slash, withdraw."""
        started = time.monotonic()
        job = self._start()
        while not self._play_round(job):
            pass
        self._withdraw(job)
        self._outcome.seconds = time.monotonic() - started
        return self._outcome

    def _start(self) -> JobId:
        stage = self._stage
        self._spend("member", *stage.register_keys())
        self._tell("keys", f"{COMMITTEE} members registered BLS keys with proofs of possession")
        job, receipt = stage.create_job(audit_rate=self._audit_rate, rounds=MOST_ROUNDS)
        self._spend("operator", receipt)
        self._spend("member", *stage.join(job))
        self._spend("client", *stage.enrol(job))
        ether = DEPOSIT / 10**18
        self._tell(
            "stake",
            f"job {job}: members staked, {len(stage.clients)} clients locked {ether:g} ETH each "
            "with the roots of their data sets",
        )
        return job

    def _play_round(self, job: JobId) -> bool:
        """Play one round; return whether the cheat was slashed in it."""
        stage, outcome = self._stage, self._outcome
        round_id, opened = stage.open_round(job)
        number = job_and_number(round_id)[1]
        self._spend("operator", opened)
        self._spend("client", *stage.commit(round_id, stage.clients))
        published = stage.publish_beacon(round_id)
        self._spend("operator", published)
        audited = stage.audited(round_id)
        for account, client in zip(outcome.accounts, stage.clients, strict=False):
            account.audited += client in audited
        seed = BeaconPublished.in_receipt(published).seed
        names = ", ".join(client.name for client in audited) or "nobody"
        self._tell(
            f"round {number}",
            f"{len(stage.clients)} gradients committed; beacon 0x{seed.hex()[:8]} audits {names}",
        )

        cheat = stage.clients[self._cheat]
        caught = cheat in audited
        verdict = self._verdict(caught)
        self._spend("member", *stage.attest(round_id, verdict, range(COMMITTEE)))
        result = keccak(text=f"aggregate {number}"), model_hash(number + 1)
        self._spend("operator", stage.finalise(round_id, *result))
        outcome.rounds = number + 1
        if caught:
            self._slash(round_id, cheat, verdict)
        return caught

    def _verdict(self, caught: bool) -> Verdict:
        """The cheat passes in all rounds in which it is not audited: that is the optimism."""
        indices = {ClientIndex(i) for i in range(len(self._stage.clients))}
        if not caught:
            return Verdict.of(indices, {})
        cheat = ClientIndex(self._cheat)
        return Verdict.of(indices - {cheat}, {cheat: FaultReason.REPLAY_OUTSIDE})

    def _slash(self, round_id: Any, cheat: Actor, verdict: Verdict) -> None:
        stage = self._stage
        account = self._outcome.accounts[self._cheat]
        account.failed += 1
        self._tell("verdict", f"{cheat.name} failed its replay: all members attest it")
        self._spend("operator", stage.request_slash(round_id, cheat, verdict, 0))
        slash = stage.contracts.slashing.slash_of(round_id, cheat.address)
        self._tell(
            "veto window",
            f"{slash.captured / 10**18:g} ETH set aside until block {slash.executable_at}; "
            "nobody vetoes",
        )
        self._spend("operator", stage.execute_slash(round_id, cheat))
        account.slashed = slash.captured
        self._tell("slash", f"{cheat.name} lost {slash.captured / 10**18:g} ETH")

    def _withdraw(self, job: JobId) -> None:
        """Honest clients leave; members and the treasury take what they earned."""
        stage, outcome = self._stage, self._outcome
        deposits, jobs = stage.contracts.deposits, stage.contracts.jobs
        for account, actor in zip(outcome.accounts, [*stage.clients, *stage.members], strict=True):
            role = Role.CLIENT if account.role == "client" else Role.MEMBER
            account.deposit_after = deposits.account(job, role, actor.address).balance
            account.earned = deposits.credit_of(actor.address)
        outcome.burned = deposits.burned()
        outcome.treasury = deposits.credit_of(stage.operator.address)

        honest = stage.clients[: self._cheat]
        for client in honest:
            self._spend("client", stage.send(client, jobs.unbond_deposit(job)))
        last = deposits.account(job, Role.CLIENT, honest[-1].address).withdrawable_at
        stage.mine_past(last)
        for client in honest:
            self._spend("client", stage.send(client, deposits.withdraw(job, Role.CLIENT)))
        for actor in [*stage.members, stage.operator]:
            call = deposits.withdraw_credit(actor.address)
            self._spend("operator", stage.send(stage.operator, call))
        outcome.withdrawn = len(honest) * DEPOSIT
        outcome.held = stage.balance(deposits.address)
        self._tell(
            "withdrawal", f"{len(honest)} honest clients took back {DEPOSIT / 10**18:g} ETH each"
        )

    def _spend(self, role: str, *receipts: Receipt) -> None:
        spent = sum(receipt.gas_used for receipt in receipts)
        self._outcome.gas[role] = self._outcome.gas.get(role, 0) + spent
