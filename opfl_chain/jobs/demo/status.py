"""State of a job at one moment, as the live view shows it, derived from the chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from opfl_chain.chain.bindings.types import ChargeStatus, MemberFault, Role
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.view.records import RoundView
from opfl_chain.roles.view.view import ChainView

PHASES = ("deliver", "roll", "beacon", "answer and audit", "sum")


class Mark(Enum):
    """State of one contribution."""

    ABSENT = "not on the roll"
    ON_ROLL = "on the roll"
    CHOSEN = "to be audited"
    TRUSTED = "accepted unseen"
    PASSED = "audited, passed"
    HELD = "held"
    CHARGED = "charged"
    ACQUITTED = "acquitted"
    LEFT_OUT = "left out"


_CHARGE_MARKS = {
    ChargeStatus.HELD: Mark.HELD,
    ChargeStatus.CHARGED: Mark.CHARGED,
    ChargeStatus.ACQUITTED: Mark.ACQUITTED,
    ChargeStatus.UNLOCKED: Mark.LEFT_OUT,
}


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
class MemberStatus:
    """A member or standby. Amounts are in wei."""

    cheat: str | None
    stake: int
    seat: int | None
    """Its seat; None for a standby."""
    earned: int
    faults: Sequence[tuple[int, MemberFault]] = ()
    """Rounds and faults that it paid for."""


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
    earned: dict[str, int]
    """Pay of every client for accepted contributions, claimed or not, in wei."""
    members: dict[str, MemberStatus]
    up: dict[str, bool]
    cheats: dict[str, str | None]
    charged: dict[str, int] = field(default_factory=dict)
    """The round of the audit that a client was charged for."""
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
        grid = {
            name: [self._mark(round_, address, block) for round_ in rounds]
            for name, address in self._clients.items()
        }
        pay = net.job.terms.pay.client
        return JobStatus(
            seconds,
            block,
            net.plan.rounds,
            phase_of(rounds[-1], block) if rounds else None,
            grid,
            {name: self._balance(Role.CLIENT, each) for name, each in self._clients.items()},
            {
                name: pay * sum(mark in (Mark.TRUSTED, Mark.PASSED) for mark in marks)
                for name, marks in grid.items()
            },
            self._members(rounds),
            {name: daemon.alive for name, daemon in net.daemons.items()},
            dict(zip(self._clients, net.plan.clients, strict=True)),
            {
                names[charge.client]: charge.round
                for charge in net.view.charges()
                if charge.status is ChargeStatus.CHARGED
            },
            accuracies,
        )

    def _mark(self, round_: RoundView, client: Address, block: int) -> Mark:
        known = self._over.get((round_.number, client))
        mark = known or mark_of(self._net.view, round_, client, block)
        if round_.over is not None and mark is not Mark.HELD:
            self._over[round_.number, client] = mark
        return mark

    def _members(self, rounds: Sequence[RoundView]) -> dict[str, MemberStatus]:
        net, view = self._net, self._net.view
        seats, penalties = list(view.seats()), view.penalties()
        cheats = (*net.plan.members, *net.plan.standbys)
        agreed = [
            member
            for round_ in rounds
            for member, attested in view.attestations(round_.id).items()
            if attested == round_.verdict_hash
        ]
        names = [name for name in net.addresses if name.startswith(("member", "standby"))]
        return {
            name: MemberStatus(
                cheat,
                self._balance(Role.MEMBER, address),
                seats.index(address) if address in seats else None,
                net.job.terms.pay.member * agreed.count(address),
                [(each.round, each.fault) for each in penalties if each.member == address],
            )
            for name, address, cheat in zip(names, net.job.roster, cheats, strict=True)
        }

    def _balance(self, role: Role, owner: Address) -> int:
        return self._net.job.contracts.deposits.account(self._net.job.id, role, owner).balance


def phase_of(round_: RoundView, block: int) -> Phase:
    schedule = round_.schedule
    if round_.over is not None:
        return Phase(round_.number, len(PHASES), None)
    if round_.verdict_hash is not None:
        return Phase(round_.number, 4, schedule.finalise)
    if round_.settled(block):
        return Phase(round_.number, 3, schedule.attest)
    if round_.roll is not None:
        return Phase(round_.number, 2, schedule.beacon)
    if block >= schedule.deliver:
        return Phase(round_.number, 1, schedule.roll)
    return Phase(round_.number, 0, schedule.deliver)


def mark_of(view: ChainView, round_: RoundView, client: Address, block: int) -> Mark:
    if not view.on_roll(round_, client):
        return Mark.ABSENT
    audited = round_.settled(block) and view.is_audited(round_, client)
    passes = view.decided_passes(round_) if round_.verdict_hash else None
    if passes is None:
        if round_.over is not None:
            return Mark.LEFT_OUT
        return Mark.CHOSEN if audited else Mark.ON_ROLL
    if view.clients()[client].index in Verdict.decode(passes).passed:
        return Mark.PASSED if audited else Mark.TRUSTED
    if not audited:
        return Mark.LEFT_OUT
    charge = view.charge(round_, client)
    return Mark.HELD if charge is None else _CHARGE_MARKS[charge.status]
