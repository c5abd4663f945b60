"""State of a job at one moment, as the live view shows it, derived from the chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from opfl_chain.chain.bindings.types import Role, SlashStatus
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.protocol.identifiers import Address
from opfl_chain.roles.view.view import ChainView, RoundView

PHASES = ("commit", "beacon", "deliver and audit", "aggregate")


class Mark(Enum):
    """State of one contribution."""

    ABSENT = "absent"
    COMMITTED = "committed"
    CHOSEN = "to be audited"
    TRUSTED = "accepted unseen"
    PASSED = "audited, passed"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Phase:
    """Phase of the latest round, and the last block of that phase."""

    round: int
    place: int
    deadline: int | None

    @property
    def name(self) -> str:
        return PHASES[self.place] if self.place < len(PHASES) else "over"


@dataclass(frozen=True)
class JobStatus:
    seconds: float
    block: int
    rounds: int
    phase: Phase | None
    grid: dict[str, list[Mark]]
    """Marks of every client, by round."""
    deposits: dict[str, int]
    """Locked deposits by client, in wei."""
    up: dict[str, bool]
    cheats: dict[str, str | None]
    slashed: dict[str, int] = field(default_factory=dict)
    """The round of the fault that a client was slashed for."""
    accuracies: dict[int, float] = field(default_factory=dict)


class JobStatusReader:
    """Derives the state repeatedly, and caches marks that cannot change any more."""

    def __init__(self, net: Localnet) -> None:
        self._net = net
        self._clients = {n: str(a) for n, a in net.addresses.items() if n.startswith("client")}
        self._over: dict[tuple[int, str], Mark] = {}

    def now(self, seconds: float, accuracies: dict[int, float]) -> JobStatus:
        net, block = self._net, self._net.devnet.rpc.block_number()
        rounds = net.view.rounds()
        names = {address: name for name, address in self._clients.items()}
        return JobStatus(
            seconds,
            block,
            net.plan.rounds,
            phase_of(rounds[-1], block) if rounds else None,
            {
                name: [self._mark(round_, address, block) for round_ in rounds]
                for name, address in self._clients.items()
            },
            self._deposits(),
            {name: daemon.alive for name, daemon in net.daemons.items()},
            dict(zip(self._clients, net.plan.clients, strict=True)),
            {
                names[slash.client]: slash.round
                for slash in net.view.slashes()
                if slash.status is SlashStatus.EXECUTED
            },
            accuracies,
        )

    def _mark(self, round_: RoundView, client: Address, block: int) -> Mark:
        known = self._over.get((round_.number, client))
        mark = known or mark_of(self._net.view, round_, client, block)
        if round_.over is not None:
            self._over[round_.number, client] = mark
        return mark

    def _deposits(self) -> dict[str, int]:
        deposits, job = self._net.job.contracts.deposits, self._net.job.id
        return {
            name: deposits.account(job, Role.CLIENT, address).balance
            for name, address in self._clients.items()
        }


def phase_of(round_: RoundView, block: int) -> Phase:
    schedule = round_.schedule
    if round_.over is not None:
        return Phase(round_.number, len(PHASES), None)
    if round_.verdict_hash is not None:
        return Phase(round_.number, 3, schedule.finalise)
    if round_.settled(block):
        return Phase(round_.number, 2, schedule.attest)
    if round_.closed(block):
        return Phase(round_.number, 1, schedule.beacon)
    return Phase(round_.number, 0, schedule.commit)


def mark_of(view: ChainView, round_: RoundView, client: Address, block: int) -> Mark:
    verdict = view.decided_verdict(round_) if round_.verdict_hash else None
    index = view.clients()[client].index if client in view.clients() else None
    committed = client in view.direct_commitments(round_.id)
    audited = round_.settled(block) and view.is_audited(round_, client)
    if verdict is not None and index in {fault.client for fault in verdict.faults}:
        return Mark.FAILED
    if verdict is not None and index in verdict.passed:
        return Mark.PASSED if audited else Mark.TRUSTED
    if not committed:
        return Mark.ABSENT
    if verdict is not None or round_.over is not None:
        return Mark.LEFT_OUT
    return Mark.CHOSEN if audited else Mark.COMMITTED
