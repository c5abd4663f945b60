"""One client cheats in every round until an audit hits it, and loses its deposit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eth_utils.crypto import keccak
from rich.console import Console
from rich.table import Table

from opfl_chain.chain.bindings.events import BeaconPublished
from opfl_chain.chain.bindings.types import Outcome, Role
from opfl_chain.chain.contracts.contract import Receipt
from opfl_chain.chain.terms import DEPOSIT, PAY, STAKE
from opfl_chain.jobs.contract_demo.contract_job import COMMITTEE, Actor, ContractJob, model_hash
from opfl_chain.protocol.identifiers import ClientIndex, JobId, RoundId, job_and_number
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.render.text import ether, light_table, rounded_ether, seconds_in_words

# At the lowest rate that the command accepts, 0.05, the cheat escapes all with probability 2e-6.
MOST_ROUNDS = 256

Narrator = Callable[[str, str], None]


@dataclass
class Account:
    """One participant's money, in wei, and audits."""

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
class SlashingResult:
    """The outcome of the demo."""

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
    """Runs the demo with all actors, and tells a narrator what happens."""

    def __init__(self, actors: ContractJob, audit_rate: float, tell: Narrator) -> None:
        self._actors = actors
        self._audit_rate = audit_rate
        self._tell = tell
        self._cheat = len(actors.clients) - 1
        self._outcome = SlashingResult()
        self._outcome.accounts = [
            Account(client.name, "client", cheat=i == self._cheat, deposit_before=DEPOSIT)
            for i, client in enumerate(actors.clients)
        ] + [
            Account(member.name, "member", cheat=False, deposit_before=STAKE)
            for member in actors.roster
        ]
        self._played: list[tuple[RoundId, Verdict]] = []

    def run(self) -> SlashingResult:
        """Deposit, contribute, audit, charge, claim, withdraw."""
        started = time.monotonic()
        job = self._start()
        while not self._play_round(job):
            pass
        self._claim()
        self._withdraw(job)
        self._outcome.seconds = time.monotonic() - started
        return self._outcome

    def _start(self) -> JobId:
        actors = self._actors
        self._spend("member", *actors.register_keys())
        self._tell(
            "keys", f"{len(actors.roster)} members registered BLS keys with proofs of possession"
        )
        job, receipt = actors.create_job(audit_rate=self._audit_rate, rounds=MOST_ROUNDS)
        self._spend("operator", receipt)
        self._spend("member", *actors.join(job))
        self._spend("client", *actors.enrol(job))
        self._tell(
            "stake",
            f"job {job}: members staked, {len(actors.clients)} clients locked {ether(DEPOSIT)} each"
            " with the roots of their data sets",
        )
        return job

    def _play_round(self, job: JobId) -> bool:
        """Play one round; return whether the cheat was charged in it."""
        actors, outcome = self._actors, self._outcome
        round_id, opened = actors.open_round(job)
        number = job_and_number(round_id)[1]
        self._spend("operator", opened)
        self._spend("operator", actors.commit_roll(round_id))
        published = actors.publish_beacon(round_id)
        self._spend("operator", published)
        audited = actors.audited(round_id)
        for account, client in zip(outcome.accounts, actors.clients, strict=False):
            account.audited += client in audited
        seed = BeaconPublished.in_receipt(published).seed
        names = ", ".join(client.name for client in audited) or "nobody"
        self._tell(
            f"round {number}",
            f"{len(actors.clients)} gradients on the roll; "
            f"beacon 0x{seed.hex()[:8]} audits {names}",
        )

        cheat = actors.clients[self._cheat]
        caught = cheat in audited
        verdict = self._verdict(caught)
        self._spend("member", *actors.attest(round_id, verdict, range(COMMITTEE)))
        result = keccak(text=f"aggregate {number}"), model_hash(number + 1)
        self._spend("operator", actors.finalise(round_id, *result))
        outcome.rounds = number + 1
        self._played.append((round_id, verdict))
        if caught:
            self._charge(round_id, cheat, verdict)
        return caught

    def _verdict(self, caught: bool) -> Verdict:
        """Return the verdict: optimistically, the cheat passes whenever it is not audited."""
        indices = {ClientIndex(i) for i in range(len(self._actors.clients))}
        return Verdict.of(indices - {ClientIndex(self._cheat)} if caught else indices)

    def _charge(self, round_id: RoundId, cheat: Actor, verdict: Verdict) -> None:
        actors = self._actors
        account = self._outcome.accounts[self._cheat]
        account.failed += 1
        self._tell("verdict", f"{cheat.name} failed its audit: all members attest it")
        self._spend("operator", actors.hold(round_id, cheat, verdict))
        held = actors.contracts.charges.charge_of(round_id, cheat.address).held
        self._tell("hold", f"{ether(held)} set aside until two members sign how the audit ended")
        self._spend("operator", actors.charge(round_id, cheat, Outcome.OUTSIDE))
        account.slashed = held
        self._tell("charge", f"{cheat.name} lost {ether(held)}")

    def _claim(self) -> None:
        """Everybody claims the pay for the rounds in which it worked."""
        actors = self._actors
        for index, client in enumerate(actors.clients):
            earned = [pair for pair in self._played if ClientIndex(index) in pair[1].passed]
            if earned:
                rounds, verdicts = zip(*earned, strict=True)
                self._spend("client", actors.claim(client, rounds, verdicts))
                self._outcome.accounts[index].earned = len(earned) * PAY.client
        played = [round_id for round_id, _ in self._played]
        for index, member in enumerate(actors.members, len(actors.clients)):
            self._spend("member", actors.claim_service(member, played))
            self._outcome.accounts[index].earned = len(played) * PAY.member
        self._tell("claims", f"everybody claimed its pay; rounds played: {len(played)}")

    def _withdraw(self, job: JobId) -> None:
        """Honest clients leave; the treasury takes its share."""
        actors, outcome = self._actors, self._outcome
        deposits, jobs = actors.contracts.deposits, actors.contracts.jobs
        for account, actor in zip(outcome.accounts, [*actors.clients, *actors.roster], strict=True):
            role = Role.CLIENT if account.role == "client" else Role.MEMBER
            account.deposit_after = deposits.account(job, role, actor.address).balance
        outcome.burned = deposits.burned()
        outcome.treasury = deposits.credit_of(actors.operator.address)

        honest = actors.clients[: self._cheat]
        for client in honest:
            self._spend("client", actors.send(client, jobs.unbond_deposit(job)))
        last = deposits.account(job, Role.CLIENT, honest[-1].address).withdrawable_at
        actors.mine_past(last)
        for client in honest:
            self._spend("client", actors.send(client, deposits.withdraw(job, Role.CLIENT)))
        call = deposits.withdraw_credit(actors.operator.address)
        self._spend("operator", actors.send(actors.operator, call))
        outcome.withdrawn = len(honest) * DEPOSIT
        outcome.held = actors.balance(deposits.address)
        self._tell("withdrawal", f"{len(honest)} honest clients took back {ether(DEPOSIT)} each")

    def _spend(self, role: str, *receipts: Receipt) -> None:
        spent = sum(receipt.gas_used for receipt in receipts)
        self._outcome.gas[role] = self._outcome.gas.get(role, 0) + spent


def play(actors: ContractJob, audit_rate: float, console: Console) -> SlashingResult:
    """Run the demo, print each step as it happens, then the balances."""

    def tell(step: str, text: str) -> None:
        console.print(f"[cyan]{step:>12}[/]  {text}", highlight=False)

    for name, address in actors.deployment.addresses.items():
        tell("deployed", f"{name:<9}{address}")
    with console.status("playing"):
        outcome = SlashingDemo(actors, audit_rate, tell).run()
    console.print()
    console.print(balances(outcome))
    console.print(gas_by_role(outcome))
    return outcome


def balances(outcome: SlashingResult) -> Table:
    columns = ("", ">deposit before", ">after", ">slashed", ">earned", ">audited")
    table = light_table(columns, title="Balances in ETH")
    for account in outcome.accounts:
        name = f"{account.name} (cheats)" if account.cheat else account.name
        table.add_row(
            name,
            rounded_ether(account.deposit_before),
            rounded_ether(account.deposit_after),
            rounded_ether(account.slashed) if account.slashed else "",
            rounded_ether(account.earned) if account.earned else "",
            f"{account.audited}x" if account.role == "client" else "",
            style="red" if account.slashed else None,
        )
    table.add_row("treasury", "", "", "", rounded_ether(outcome.treasury), "")
    table.add_row("burned", "", rounded_ether(outcome.burned), "", "", "")
    return table


def gas_by_role(outcome: SlashingResult) -> Table:
    rounds = "1 round" if outcome.rounds == 1 else f"{outcome.rounds} rounds"
    rows = [(role, f"{gas:,}") for role, gas in outcome.gas.items()]
    title = f"{rounds}, {seconds_in_words(outcome.seconds)}"
    return light_table(("role", ">gas"), rows, title=title)
