"""The result of a demo: every fact from the chain, costs as each daemon reports them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from opfl_chain.adversaries import clients
from opfl_chain.chain.bindings.types import Role
from opfl_chain.jobs.demo.status import JobStatus
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import LEFT_OUT, OPERATOR, PASSED, JobOutcome
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.trail import Report
from opfl_chain.trail.ledger import final_ledger


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
    failed: int
    slashed: int


@dataclass(frozen=True)
class MemberResult:
    name: str
    role: str
    deposit_before: int
    deposit_after: int
    earned: int
    penalised: int


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
        return [self._member(f"member-{place}") for place in range(len(self.plan.members))]

    @property
    def honest_slashed(self) -> int:
        honest = [client for client in self.clients if client.cheat is None]
        return sum(client.deposit_after < client.deposit_before for client in honest)

    @property
    def cheats_audited(self) -> int:
        return len(self._audited_cheating)

    @property
    def cheats_slashed(self) -> int:
        return sum(client.slashed > 0 for client in self._audited_cheating)

    @property
    def caught(self) -> int:
        """Cheats that were slashed; some faults show without an audit."""
        return sum(client.slashed > 0 for client in self.clients if client.cheat is not None)

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
    def report(self) -> dict[str, Any]:
        """The result as `--json` writes it. Amounts are in wei."""
        scored = sorted(self.accuracies.items())
        return {
            "rounds": self.outcome.rounds,
            "clients": [vars(client) for client in self.clients],
            "members": [vars(member) for member in self.members],
            "honest_slashed": self.honest_slashed,
            "cheats_audited": self.cheats_audited,
            "cheats_slashed": self.cheats_slashed,
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
            "unaccounted_wei": self.outcome.unaccounted_wei,
        }

    @cached_property
    def _audited_cheating(self) -> Sequence[ClientResult]:
        """Clients that were audited while they cheated."""
        return [client for client in self.clients if client.audited_cheating]

    def _client(self, name: str, cheat: str | None) -> ClientResult:
        outcome = self.outcome
        took_part = [n for n in range(outcome.rounds) if name in outcome.participants(n)]
        judged = {n: verdict for n in took_part if (verdict := outcome.verdict(n, name))}
        audited = [n for n in judged if outcome.is_audited(n, name)]
        before, after = self._money(name, Role.CLIENT)
        return ClientResult(
            name=name,
            role="client",
            cheat=cheat,
            deposit_before=before,
            deposit_after=after,
            rounds=len(took_part),
            cheated=sum(cheats_in(cheat, n, took_part) for n in took_part),
            audited=len(audited),
            audited_cheating=sum(cheats_in(cheat, n, took_part) for n in audited),
            failed=sum(verdict not in (PASSED, LEFT_OUT) for verdict in judged.values()),
            slashed=sum(
                slash.requested.event.captured
                for (_, client), slash in outcome.history.slashes.items()
                if outcome.names[client] == name and slash.executed is not None
            ),
        )

    def _member(self, name: str) -> MemberResult:
        before, after = self._money(name, Role.MEMBER)
        earned = self._credited(self.outcome.address(name))
        return MemberResult(name, "member", before, after, earned, before - after)

    def _money(self, name: str, role: Role) -> tuple[int, int]:
        """Return what was locked in the contract, and what was withdrawn."""
        ledger, owner = final_ledger(self.outcome.history), (role, self.outcome.address(name))
        return ledger.locked[owner], ledger.withdrawn[owner]

    def _credited(self, account: str) -> int:
        return self.outcome.credited_wei.get(account, 0)
