"""Enforcement of a decided verdict: slashes and penalties, each when due and by turn."""

from __future__ import annotations

from collections.abc import Sequence

from opfl_chain.chain.bindings.types import BatchProof, MemberFault, Reason, SlashStatus, Verdict
from opfl_chain.chain.contracts.contract import Call
from opfl_chain.protocol.identifiers import Address, round_id_of
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.roles.claims import Claims
from opfl_chain.roles.evidence import two_acquittals
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.round_driver import place_of, turn_of
from opfl_chain.roles.view.view import RoundView, SlashView

_DIRECT = BatchProof(bytes(32), (), b"")


class Enforcement:
    """Slashes and penalises. A failed replay costs a client only if a second one fails too."""

    def __init__(self, node: Node, rank: int, store: MemberStore, claims: Claims) -> None:
        self._node = node
        self._rank = rank
        self._store = store
        self._claims = claims

    def act(self, round_: RoundView, now: Moment) -> None:
        """Enforce the verdict of one round, if it is decided."""
        if round_.decided_at is None:
            return
        place = place_of(self._rank, round_.number)
        in_time = not now.has_come(round_.schedule.request)
        if in_time and now.has_come(turn_of(place, round_.decided_at)):
            self._request(round_, now)
        self._penalise(round_, now, place)

    def act_on_slash(self, slash: SlashView, now: Moment) -> None:
        """Veto or execute one requested slash."""
        round_ = self._node.view.round(slash.round)
        if round_ is None or slash.status is not SlashStatus.REQUESTED:
            return
        slashing = self._node.job.contracts.slashing
        replayed = self._store.second_replay(slash.round, slash.client)
        if replayed and not now.has_come(slash.executable_at - 1):
            found = two_acquittals(self._node.peers, self._node.job, round_, slash.client)
            if found is None:
                self._node.agenda.again()
            else:
                call = slashing.veto_with_acquittals(round_.id, slash.client, found)
                self._node.send(call, f"acquit {slash.round} {slash.client}")
            return
        self.execute([slash], now)

    def execute(self, slashes: Sequence[SlashView], now: Moment) -> None:
        """Execute those of the slashes that are confirmed, once nobody can veto them any more."""
        due = [slash for slash in slashes if self._is_executable(slash, now)]
        slashing, job = self._node.job.contracts.slashing, self._node.job.id
        self._node.send_all(
            {
                f"execute {slash.round} {slash.client}": slashing.execute(
                    round_id_of(job, slash.round), slash.client
                )
                for slash in due
            }
        )

    def _is_executable(self, slash: SlashView, now: Moment) -> bool:
        replayed = self._store.second_replay(slash.round, slash.client)
        confirmed = slash.reason is not Reason.REPLAY_OUTSIDE or replayed is False
        # If a peer prevented a second replay, the first one stands.
        confirmed |= replayed is None and now.has_come(self._replay_deadline(slash))
        place = place_of(self._rank, slash.round)
        return confirmed and now.has_come(turn_of(place, slash.executable_at - 1))

    def awaits_second_replay(self, slash: SlashView, now: Moment) -> bool:
        """Return whether a second replay is pending: an absent peer delays us only for a time."""
        return (
            slash.status is SlashStatus.REQUESTED
            and not now.has_come(self._replay_deadline(slash))
            and slash.reason is Reason.REPLAY_OUTSIDE
            and self._store.second_replay(slash.round, slash.client) is None
            and self._store.delivery(slash.round, slash.client) is not None
        )

    def has_requested_all(self, round_: RoundView, now: Moment) -> bool:
        """Return whether all slashes for failed replays in a round have been requested."""
        if now.has_come(round_.schedule.request):
            return True
        view, verdict = self._node.view, self._node.view.decided_verdict(round_)
        addresses = {client.index: client.address for client in view.clients().values()}
        return verdict is not None and all(
            view.slash(round_.number, addresses[fault.client]) is not None
            for fault in verdict.faults
            if fault.reason is FaultReason.REPLAY_OUTSIDE and fault.client in addresses
        )

    def _replay_deadline(self, slash: SlashView) -> int:
        return slash.executable_at + self._node.job.terms.phases.veto

    def _request(self, round_: RoundView, now: Moment) -> None:
        view, slashing = self._node.view, self._node.job.contracts.slashing
        verdict = view.decided_verdict(round_)
        if verdict is None or not verdict.faults:
            return
        addresses = {client.index: client.address for client in view.clients().values()}
        encoded = Verdict(verdict.passes_bytes, verdict.faults_bytes)
        calls: dict[str, Call] = {}
        for position, fault in enumerate(verdict.faults):
            client = addresses.get(fault.client)
            if client is None or view.slash(round_.number, client) is not None:
                continue
            calls[f"request {round_.number} {client}"] = slashing.request(
                round_.id, client, encoded, position, self._proof(round_, client)
            )
        self._node.send_all(calls)

    def _proof(self, round_: RoundView, client: Address) -> BatchProof:
        if self._node.view.direct_commitment(round_.id, client) is not None:
            return _DIRECT
        batch = self._claims.batch(round_)
        return (batch and batch.proof(client)) or _DIRECT

    def _penalise(self, round_: RoundView, now: Moment, place: int) -> None:
        for _, member in self._node.peers.others(self._node.address):
            for fault, since in self._faults(round_, member, now):
                known = self._node.view.is_penalised(round_.id, member, fault)
                if not known and now.has_come(turn_of(place, since)):
                    call = self._node.job.contracts.slashing.penalise_member(
                        round_.id, member, fault
                    )
                    self._node.send(call, f"penalise {round_.number} {member} {fault.name}")

    def _faults(
        self, round_: RoundView, member: Address, now: Moment
    ) -> list[tuple[MemberFault, int]]:
        """Return a member's faults as the chain shows them, each with its first block."""
        view, decided_at = self._node.view, round_.decided_at or 0
        attested = view.attestations(round_.id).get(member)
        found = []
        overdue = round_.seed is None and now.has_seen(round_.schedule.beacon + 1)
        if overdue and member not in view.published_partials(round_.id):
            found.append((MemberFault.BEACON_WITHHELD, decided_at))
        if attested is not None and attested != round_.verdict_hash:
            found.append((MemberFault.VERDICT_DISSENT, decided_at))
        if attested is None and now.has_seen(round_.schedule.attest + 1):
            found.append((MemberFault.VERDICT_SILENCE, round_.schedule.attest))
        return found
