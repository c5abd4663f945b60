"""Gas cost of every action, from the receipts of a job on a real chain."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eth_utils.crypto import keccak

from opfl_chain.chain.bindings.types import MemberFault, Outcome, Role
from opfl_chain.chain.contracts.contract import Receipt
from opfl_chain.chain.devnet import Backend, start_devnet
from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.contract_demo.contract_job import (
    ACCOUNTS_BESIDE_CLIENTS,
    ContractJob,
    model_hash,
)
from opfl_chain.protocol.identifiers import ClientIndex, JobId, RoundId
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.render.text import gas_in_words, markdown_table

CLIENTS = 8
CLAIMED_ROUNDS = 4
"""Rounds that one claim is measured for, besides a claim for one."""
_PAGE = """\
# Gas per role and round

`make gas` generates this page from transaction receipts on a fresh Anvil (Prague). A figure is the
gas of the whole transaction, including the base cost of 21,000.

"""
GAS_COLUMNS = ("role", "action", "when", ">gas")


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
        self._everyone = Verdict.of(ClientIndex(i) for i in range(CLIENTS))

    def measure(self) -> list[GasCost]:
        job = self._measure_start()
        played = [self._play(job) for _ in range(1 + CLAIMED_ROUNDS)]
        self._measure_round(job)
        self._measure_root_alone()
        self._measure_claims(played)
        self._measure_faulty_round(job)
        self._measure_leaving(job)
        return self._costs

    def _measure_start(self) -> JobId:
        actors = self._actors
        self._note("member", "register BLS key", "once", actors.register_keys()[0])
        job, created = actors.create_job(audit_rate=1.0, rounds=16)
        self._note("operator", "create job", "per job", created)
        self._note("member", "stake", "per job", actors.join(job)[-1])
        self._note("client", "lock deposit, record data set root", "per job", actors.enrol(job)[-1])
        call = actors.contracts.jobs.top_up_deposit(job, value=DEPOSIT)
        self._note("client", "top up deposit", "when short", actors.send(actors.clients[0], call))
        return job

    def _play(self, job: JobId) -> RoundId:
        """Play a round that everybody passes. The first of a job pays for slots of the job."""
        actors = self._actors
        round_id, opened = actors.open_round(job)
        if not any(cost.action.startswith("open first round") for cost in self._costs):
            self._note("operator", "open first round (adds up the keys)", "per job", opened)
        actors.commit_roll(round_id)
        actors.publish_beacon(round_id)
        actors.attest(round_id, self._everyone, (0, 1, 2))
        self._finalise(round_id)
        return round_id

    def _measure_round(self, job: JobId) -> None:
        actors = self._actors
        round_id, opened = actors.open_round(job)
        self._note("operator", "open round", "per round", opened)
        rolled = actors.commit_roll(round_id)
        self._note("operator", f"commit roll of {CLIENTS} with pairs", "per round", rolled)
        published = actors.publish_beacon(round_id)
        self._note("operator", "publish beacon, aggregate", "per round", published)
        attested = actors.attest(round_id, self._everyone, (0, 1, 2))
        self._note("member", "attest verdict, first", "per round", attested[0])
        self._note("member", "attest verdict, deciding", "per round", attested[1])
        self._note("member", "attest verdict, last", "per round", attested[2])
        self._note("operator", "finalise", "per round", self._finalise(round_id))

    def _measure_root_alone(self) -> None:
        """Measure the roll of a job that keeps the pairs off the chain."""
        actors = self._actors
        job, _ = actors.create_job(audit_rate=1.0, rounds=2, public_roll=False)
        actors.join(job)
        actors.enrol(job)
        round_id, _ = actors.open_round(job)
        rolled = actors.commit_roll(round_id, is_public=False)
        self._note("operator", "commit roll, the root alone", "per round", rolled)

    def _measure_claims(self, played: list[RoundId]) -> None:
        actors = self._actors
        client, member = actors.clients[0], actors.members[0]
        first = actors.claim(client, played[:1], [self._everyone])
        self._note("client", "claim pay, first time", "per 128 rounds", first)
        rest = played[1:]
        claimed = actors.claim(client, rest[:1], [self._everyone])
        self._note("client", "claim pay for one round", "at will", claimed)
        many = actors.claim(actors.clients[1], rest, [self._everyone] * len(rest))
        when = "at will"
        self._note("client", f"claim pay for {len(rest)} rounds, first time", when, many)
        action = f"per round, {len(rest)} rounds in a claim"
        self._costs.append(GasCost("client", action, when, many.gas_used / len(rest)))
        served = actors.claim_service(member, rest)
        self._note("member", f"claim pay for {len(rest)} rounds, first time", when, served)

    def _measure_faulty_round(self, job: JobId) -> None:
        """Measure a round with partial signatures, held audits, and members at fault."""
        actors = self._actors
        round_id, _ = actors.open_round(job)
        actors.commit_roll(round_id)
        partials = actors.publish_partials(round_id, (0, 1, 2))
        self._note("member", "publish the first partial signature", "when late", partials[0])
        self._note("member", "publish partial signature", "when late", partials[1])
        self._note("member", "publish the last partial signature", "when late", partials[2])

        cheat, late = actors.clients[1:3]
        verdict = Verdict.of({ClientIndex(0), *(ClientIndex(i) for i in range(3, CLIENTS))})
        actors.attest(round_id, verdict, (0, 1))
        actors.attest(round_id, self._everyone, (2,))
        dissent = actors.penalise(round_id, actors.members[2], MemberFault.DISSENT)
        self._note("operator", "penalise a member, shown on chain", "per fault", dissent)
        absence = actors.certify(round_id, actors.members[2], MemberFault.ABSENCE)
        self._note("operator", "penalise a member, signed by two", "per fault", absence)

        held = actors.hold(round_id, cheat, verdict)
        self._note("operator", "hold an audit", "per fault", held)
        actors.hold(round_id, late, verdict)
        charged = actors.charge(round_id, cheat, Outcome.OUTSIDE)
        self._note("operator", "charge a client", "per fault", charged)
        acquitted = actors.acquit(round_id, late)
        self._note("operator", "acquit a client", "when it answers late", acquitted)
        self._note("operator", "change a seat", "when absent", actors.change_seat(job, 2))

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


def measured_costs(chain: Backend) -> list[GasCost]:
    """Measure the costs on a fresh chain, and return them sorted by role."""
    with (
        start_devnet(chain, accounts=CLIENTS + ACCOUNTS_BESIDE_CLIENTS) as devnet,
        tempfile.TemporaryDirectory(prefix="opfl-gas-") as folder,
        ContractJob(devnet.rpc, devnet.accounts, devnet.mine, Path(folder)) as actors,
    ):
        return sorted(GasMeter(actors).measure(), key=lambda cost: cost.role)


def gas_rows(costs: Sequence[GasCost]) -> list[tuple[str, ...]]:
    return [(cost.role, cost.action, cost.when, gas_in_words(cost.gas)) for cost in costs]


def gas_page(costs: Sequence[GasCost]) -> str:
    return f"{_PAGE}{markdown_table(GAS_COLUMNS, gas_rows(costs), tight=True)}\n"
