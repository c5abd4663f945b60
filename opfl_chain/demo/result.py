"""What a demo ended with: every fact from the chain, costs from those who had them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opfl_chain.chain.bindings.events import Credited
from opfl_chain.chain.bindings.types import Role
from opfl_chain.demo.cheating import cheats_in
from opfl_chain.demo.costs import Cost, by_role
from opfl_chain.demo.standing import Standing
from opfl_chain.localnet.outcome import LEFT_OUT, OPERATOR, PASSED, Outcome
from opfl_chain.localnet.plan import Plan
from opfl_chain.trail import Report
from opfl_chain.trail.ledger import final_ledger


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
    outcome: Outcome
    trail: Report
    """What was recomputed, and what does not hold."""
    treasury: str
    standing: Standing | None
    """How things stood before everybody left, for the picture."""
    accuracies: Mapping[int, float]
    costs: Mapping[str, Cost]
    """By the name of the daemon."""
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
        return self.outcome.trail.standing.burned

    @property
    def treasury_credit(self) -> int:
        return self._credited(self.treasury)

    @property
    def report(self) -> dict[str, Any]:
        """As `--json` writes it. Amounts are in wei."""
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
        """Those who were audited while they cheated."""
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
        """What went into the contract, and what came back."""
        ledger, owner = final_ledger(self.outcome.history), (role, self.outcome.address(name))
        return ledger.locked[owner], ledger.withdrawn[owner]

    def _credited(self, account: str) -> int:
        return sum(
            entry.event.amount
            for entry in self.outcome.trail.of(Credited)
            if entry.event.account == account
        )
