"""The result of a demo: every fact from the chain, costs as each daemon reports them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from opfl_chain.adversaries import clients
from opfl_chain.jobs.demo.status import JobStatus
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import OPERATOR, JobOutcome
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.trail import Report


@dataclass(frozen=True)
class Cost:
    """Costs of a daemon. Bytes are message bodies; MPC traffic is counted separately."""

    gas: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    mpc_bytes_sent: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )

    @property
    def report(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, "cpu_seconds": round(self.cpu_seconds, 2)}


class Costs:
    """Costs of daemons that may be killed: their reports before each kill are added up."""

    def __init__(self, net: Localnet) -> None:
        self._net = net
        self._before: dict[str, Cost] = {}

    def note(self, name: str) -> None:
        """Record the costs of a daemon before it is killed."""
        if (health := self._net.health(name)) is not None:
            self._before[name] = self._before.get(name, Cost()) + _cost(health)

    def by_daemon(self, gas: Mapping[str, int]) -> dict[str, Cost]:
        spent = {}
        for name in self._net.daemons:
            ended = last_words(self._net.folder, name)
            own = Cost(gas=gas.get(name, 0)) + self._before.get(name, Cost())
            spent[name] = own + (_cost(ended) if ended else Cost())
        return spent


def by_role(spent: Mapping[str, Cost]) -> dict[str, Cost]:
    """Add costs up by role. Names are `client-0`, `member-2`, `server`."""
    roles: dict[str, Cost] = {}
    for name, cost in spent.items():
        role = name.partition("-")[0]
        roles[role] = roles.get(role, Cost()) + cost
    return roles


def last_words(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the log entry with which a daemon ended, or None if it was killed."""
    logs = sorted(folder.glob(f"{name}-*.log"), key=lambda log: int(log.stem.rpartition("-")[2]))
    found = None
    for line in logs[-1].read_text(errors="replace").splitlines() if logs else ():
        entry = _object(line)
        if entry.get("event") == "ended":
            found = entry
    return found


def accuracies(said: Mapping[str, Any] | None) -> dict[int, float]:
    """Return accuracies by number of model updates, from the server's report."""
    found = (said or {}).get("accuracies", {})
    return {int(updates): float(accuracy) for updates, accuracy in found.items()}


def _cost(said: Mapping[str, Any]) -> Cost:
    return Cost(
        bytes_sent=int(said.get("bytes_sent", 0)),
        bytes_received=int(said.get("bytes_received", 0)),
        mpc_bytes_sent=int(said.get("mpc_bytes_sent", 0)),
        cpu_seconds=float(said.get("cpu_seconds", 0)) + float(said.get("mpc_cpu_seconds", 0)),
    )


def _object(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def cheats_in(cheat: str | None, number: int, took_part: Collection[int]) -> bool:
    """Return whether a client with this cheat departed from the protocol in a round."""
    if cheat is None or number not in took_part:
        return False
    return clients.cheats_in(cheat, number, first=min(took_part))


@dataclass(frozen=True)
class ClientResult:
    """Amounts are in wei. `deposit_after` is what the client got back."""

    name: str
    role: str
    cheat: str | None
    deposit_before: int
    deposit_after: int
    rounds: int
    cheated: int
    audited: int
    audited_cheating: int
    held: int
    """Audits that did not pass in their round, whatever became of them."""
    failed: int
    """Audits that it was charged for."""
    charged: int
    earned: int


@dataclass(frozen=True)
class MemberResult:
    """A member or standby. Amounts are in wei."""

    name: str
    role: str
    cheat: str | None
    deposit_before: int
    deposit_after: int
    earned: int
    compensated: int
    """Its share of the penalties of others."""
    penalised: int
    faults: Sequence[str]
    """Faults that it was penalised for: `falsehood in round 0`."""


@dataclass(frozen=True)
class DemoResult:
    plan: Plan
    outcome: JobOutcome
    trail: Report
    """The checks of the trail: what was recomputed, and what does not hold."""
    treasury: str
    status: JobStatus | None
    """The state before everybody left, for the picture."""
    accuracies: Mapping[int, float]
    costs: Mapping[str, Cost]
    """Costs by daemon name."""
    seconds: float

    @cached_property
    def clients(self) -> Sequence[ClientResult]:
        return [
            self._client(f"client-{place}", cheat) for place, cheat in enumerate(self.plan.clients)
        ]

    @cached_property
    def members(self) -> Sequence[MemberResult]:
        named = {f"member-{place}": cheat for place, cheat in enumerate(self.plan.members)}
        named |= {f"standby-{place}": cheat for place, cheat in enumerate(self.plan.standbys)}
        return [self._member(name, cheat) for name, cheat in named.items()]

    @property
    def honest_clients_lost(self) -> int:
        """Number of honest clients that lost anything."""
        honest = [client for client in self.clients if client.cheat is None]
        return sum(client.deposit_after < client.deposit_before for client in honest)

    @property
    def honest_members_lost(self) -> int:
        """Number of honest members and standbys that lost anything."""
        return sum(member.penalised > 0 for member in self.members if member.cheat is None)

    @property
    def rounds_final(self) -> int:
        """Number of rounds with a result."""
        return sum(map(self.outcome.is_final, range(self.outcome.rounds)))

    @property
    def bad_members(self) -> Sequence[MemberResult]:
        return [member for member in self.members if member.cheat is not None]

    @property
    def cheats_audited(self) -> int:
        return len(self._audited_cheating)

    @property
    def cheats_charged(self) -> int:
        return sum(client.charged > 0 for client in self._audited_cheating)

    @cached_property
    def roles(self) -> dict[str, Cost]:
        operator = Cost(gas=self.outcome.gas.get(OPERATOR, 0))
        return {OPERATOR: operator, **by_role(self.costs)}

    @property
    def burned(self) -> int:
        return self.outcome.trail.final_state.burned

    @property
    def treasury_credit(self) -> int:
        return self._credited(self.treasury)

    @property
    def paid(self) -> int:
        """Pay for work, from the escrowed budget."""
        clients = sum(client.earned for client in self.clients)
        return clients + sum(member.earned for member in self.members)

    @property
    def report(self) -> dict[str, Any]:
        """The result as `--json` writes it. Amounts are in wei."""
        scored = sorted(self.accuracies.items())
        return {
            "rounds": self.outcome.rounds,
            "clients": [vars(client) for client in self.clients],
            "members": [vars(member) for member in self.members],
            "server_cheat": self.plan.server,
            "honest_clients_lost": self.honest_clients_lost,
            "honest_members_lost": self.honest_members_lost,
            "cheats_audited": self.cheats_audited,
            "cheats_charged": self.cheats_charged,
            "rounds_final": self.rounds_final,
            "seat_changes": [list(each) for each in self.outcome.seat_changes()],
            "accuracy_first": scored[0][1] if scored else None,
            "accuracy_last": scored[-1][1] if scored else None,
            "accuracies": {str(updates): accuracy for updates, accuracy in scored},
            "seconds": round(self.seconds, 2),
            "trail_verified": self.trail.holds,
            "trail_facts": sum(self.trail.facts.values()),
            "gas": {role: cost.gas for role, cost in self.roles.items()},
            "costs": {role: cost.report for role, cost in self.roles.items()},
            "burned_wei": self.burned,
            "treasury_wei": self.treasury_credit,
            "paid_wei": self.paid,
            "refunded_wei": self.outcome.refunded_wei,
            "unaccounted_wei": self.outcome.unaccounted_wei,
        }

    @cached_property
    def _audited_cheating(self) -> Sequence[ClientResult]:
        """Clients that were audited while they cheated."""
        return [client for client in self.clients if client.audited_cheating]

    def _client(self, name: str, cheat: str | None) -> ClientResult:
        outcome = self.outcome
        took_part = [n for n in range(outcome.rounds) if name in outcome.participants(n)]
        judged = [n for n in took_part if outcome.verdict(n, name) is not None]
        audited = [n for n in judged if outcome.is_audited(n, name)]
        charged = [n for n, client in outcome.charged() if client == name]
        before, lost = outcome.locked_wei(name), outcome.lost_wei(name)
        return ClientResult(
            name=name,
            role="client",
            cheat=cheat,
            deposit_before=before,
            deposit_after=before - lost,
            rounds=len(took_part),
            cheated=sum(cheats_in(cheat, n, took_part) for n in took_part),
            audited=len(audited),
            audited_cheating=sum(cheats_in(cheat, n, took_part) for n in audited),
            held=sum(client == name for _, client in outcome.held()),
            failed=len(charged),
            charged=lost,
            earned=outcome.earned_wei(name),
        )

    def _member(self, name: str, cheat: str | None) -> MemberResult:
        outcome = self.outcome
        before, lost = outcome.locked_wei(name), outcome.lost_wei(name)
        return MemberResult(
            name=name,
            role=name.partition("-")[0],
            cheat=cheat,
            deposit_before=before,
            deposit_after=before - lost,
            earned=outcome.earned_wei(name),
            compensated=self._credited(outcome.address(name)),
            penalised=lost,
            faults=[
                f"{fault.lower()} in round {number}"
                for (number, member), faults in sorted(outcome.penalties().items())
                for fault in sorted(faults)
                if member == name
            ],
        )

    def _credited(self, account: str) -> int:
        return self.outcome.credited_wei.get(account, 0)
