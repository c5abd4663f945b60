"""Costs of audits and faults: held audits, outcomes, and members who did not do their part.

Nothing is taken on one member's word. An outcome and the fault of a peer are signed only by members
who found them themselves, and go on chain with two signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.chain.bindings.types import Outcome as OutcomeOnChain
from opfl_chain.chain.contracts.contract import Call
from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.echo import Signed
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import AuditOutcome, MemberFaultStatement, Statement
from opfl_chain.protocol.verdict import Outcome, Verdict
from opfl_chain.roles.member.contributions import Contributions
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.peers import hex_field
from opfl_chain.roles.round_driver import place_of, turn_of
from opfl_chain.roles.view.records import ChargeView, RoundView
from opfl_chain.transport.errors import TransportError


class Charges:
    """One member's part in charging clients and members."""

    def __init__(
        self,
        node: Node,
        store: MemberStore,
        contributions: Contributions,
        seat: Callable[[RoundView], int | None],
    ) -> None:
        self._node = node
        self._store = store
        self._contributions = contributions
        self._seat = seat

    def act(self, round_: RoundView, now: Moment) -> None:
        """Hold, decide and penalise what a decided round shows."""
        place = place_of(self._seat(round_) or 0, round_.number)
        decided = round_.decided_at
        if decided is not None and now.has_come(turn_of(place, decided)):
            self._hold(round_)
        self._penalise(round_, now, place)
        # Peers are asked for what is left.
        if decided is not None:
            self._decide(round_, now, place)
        self._certify(round_, now, place)

    def subjects(self, round_: RoundView, block: int | None = None) -> list[Address]:
        """Audited clients on the roll that did not pass, whose audits are not decided.

        Or were not at a block: what the chain decided later does not count.
        """
        passes = self._node.view.decided_passes(round_)
        if passes is None:
            return []
        passed = Verdict.decode(passes).passed
        return [
            client
            for client, claim in self._contributions.claims(round_).items()
            if claim.audited
            and claim.client not in passed
            and not _is_decided(self._node.view.charge(round_, client), block)
        ]

    # --- clients

    def _hold(self, round_: RoundView) -> None:
        """Have the penalty of every audit that did not pass set aside."""
        view, passes = self._node.view, self._node.view.decided_passes(round_)
        calls: dict[str, Call] = {}
        for client in self.subjects(round_):
            evidence = self._contributions.evidence(round_, client)
            if passes is None or evidence is None or view.charge(round_, client) is not None:
                continue
            calls[f"hold {_name(round_)} {client}"] = self._node.job.contracts.charges.hold(
                round_.id, client, passes, evidence
            )
        self._node.send_all(calls)

    def _decide(self, round_: RoundView, now: Moment, place: int) -> None:
        """Charge or acquit clients whose audit is held and has ended, with two signatures."""
        charges = self._node.job.contracts.charges
        if self._node.address not in self._node.view.seats():
            return
        for client in self.subjects(round_):
            charge = self._node.view.charge(round_, client)
            outcome = self._store.outcome(round_.opening, client)
            if charge is None or outcome is None:
                continue
            if not now.has_come(outcome.ends_from(round_.schedule.response)):
                continue
            if not now.has_come(turn_of(place, charge.held_at)):
                continue
            statement = self.outcome_statement(round_, client, outcome)
            path = f"/rounds/{round_.id}/outcomes/{client}"
            signatures = self._two(statement, path, self._node.view.seats())
            if signatures is None:
                self._node.agenda.again()
                continue
            call = (
                charges.acquit(round_.id, client, signatures)
                if outcome is Outcome.PASSED
                else charges.charge(round_.id, client, OutcomeOnChain(int(outcome)), signatures)
            )
            self._node.send(call, f"{outcome.name.lower()} {_name(round_)} {client}")

    def outcome_statement(
        self, round_: RoundView, client: Address, outcome: Outcome
    ) -> AuditOutcome:
        return AuditOutcome(self._node.job.id, round_.number, round_.opening, client, outcome)

    # --- members

    def fault_statement(
        self, round_: RoundView, member: Address, fault: MemberFault
    ) -> MemberFaultStatement:
        return MemberFaultStatement(
            self._node.job.id, round_.number, round_.opening, member, int(fault)
        )

    def note(self, round_: RoundView, member: Address, fault: MemberFault) -> None:
        """Note a fault that we saw ourselves, to be certified together with another member."""
        if member != self._node.address:
            self._store.keep_fault(round_.opening, member, int(fault))

    def convict(
        self, round_: RoundView, member: Address, slot: int, two: tuple[Signed, Signed]
    ) -> None:
        """Show that a member signed two messages for one slot."""
        if self._node.view.is_penalised(round_.id, member, MemberFault.EQUIVOCATION):
            return
        call = self._node.job.contracts.charges.penalise_equivocation(
            round_.id,
            member,
            slot,
            (two[0].hash, two[1].hash),
            (two[0].signature, two[1].signature),
        )
        self._node.send(call, f"equivocation {_name(round_)} {member}")

    def _penalise(self, round_: RoundView, now: Moment, place: int) -> None:
        for member in self._node.view.seats_of(round_):
            if member == self._node.address:
                continue
            for fault, since in self._shown(round_, member, now):
                known = self._node.view.is_penalised(round_.id, member, fault)
                if not known and now.has_come(turn_of(place, since)):
                    call = self._node.job.contracts.charges.penalise(round_.id, member, fault)
                    self._node.send(call, f"penalise {_name(round_)} {member} {fault.name}")

    def _shown(
        self, round_: RoundView, member: Address, now: Moment
    ) -> list[tuple[MemberFault, int]]:
        """Return a member's faults as the chain shows them, each with its first block."""
        view, found = self._node.view, []
        missing = round_.seed is None and round_.roll is not None
        overdue = missing and now.has_seen(round_.schedule.beacon + 1)
        if overdue and member not in view.published_partials(round_.id):
            found.append((MemberFault.WITHHELD, round_.schedule.beacon))
        if round_.decided_at is not None:
            attested = view.attestations(round_.id).get(member)
            if attested is not None and attested != round_.verdict_hash:
                found.append((MemberFault.DISSENT, round_.decided_at))
            if attested is None and now.has_seen(round_.schedule.attest + 1):
                found.append((MemberFault.SILENCE, round_.schedule.attest))
        return found

    def _certify(self, round_: RoundView, now: Moment, place: int) -> None:
        """Have members pay for faults that we saw and another one saw as well."""
        charges = self._node.job.contracts.charges
        for member, code in self._store.faults(round_.opening):
            fault = MemberFault(code)
            if self._node.view.is_penalised(round_.id, member, fault):
                continue
            if not now.has_come(turn_of(place, round_.decided_at or round_.schedule.attest)):
                continue
            statement = self.fault_statement(round_, member, fault)
            path = f"/rounds/{round_.id}/faults/{member}/{int(fault)}"
            others = [each for each in self._node.view.roster() if each != member]
            signatures = self._two(statement, path, others)
            if signatures is not None:
                call = charges.penalise_certified(round_.id, member, fault, signatures)
                self._node.send(call, f"certify {_name(round_)} {member} {fault.name}")

    def _two(
        self, statement: Statement, path: str, members: Sequence[Address]
    ) -> tuple[bytes, bytes] | None:
        """Return our signature and that of another of these, or None if nobody has signed."""
        own, peers = self._node.sign(statement), self._node.peers
        others = [member for member in members if member != self._node.address]

        def ask(member: Address) -> bytes:
            return hex_field(peers.ask_member_json(member, path), "signature", SIGNATURE_BYTES)

        for member, signature in peers.together(others, ask):
            if isinstance(signature, TransportError):
                continue
            if signer_of(statement, self._node.job.domain, signature) == member:
                return own, signature
        return None


def _is_decided(charge: ChargeView | None, block: int | None) -> bool:
    if charge is None or charge.decided_at is None:
        return False
    return block is None or charge.decided_at <= block


def _name(round_: RoundView) -> str:
    """Name a round for an intent: one that was opened again is another one."""
    return f"{round_.number} {tohex(round_.opening)[2:18]}"
