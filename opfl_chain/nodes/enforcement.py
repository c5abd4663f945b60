"""What follows from a decided verdict: slashes and penalties, each at its time and by turn."""

from __future__ import annotations

from opfl_chain.chain.bindings.types import BatchProof, MemberFault, Reason, SlashStatus, Verdict
from opfl_chain.nodes.chain_view import RoundView, SlashView
from opfl_chain.nodes.claims import Claims
from opfl_chain.nodes.evidence import two_acquittals
from opfl_chain.nodes.member_store import MemberStore
from opfl_chain.nodes.node import Moment, Node
from opfl_chain.nodes.turns import is_due, place_of
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import FaultReason

_DIRECT = BatchProof(bytes(32), (), b"")


class Enforcement:
    """A failed replay is only paid for if a second one has failed as well."""

    def __init__(self, node: Node, rank: int, store: MemberStore, claims: Claims) -> None:
        self._node = node
        self._rank = rank
        self._store = store
        self._claims = claims

    def act(self, round_: RoundView, now: Moment) -> None:
        """On one decided round."""
        if round_.decided_at is None:
            return
        place = place_of(self._rank, round_.number)
        if is_due(place, round_.decided_at, now.head) and now.head < round_.schedule.request:
            self._request(round_, now)
        self._penalise(round_, now, place)

    def act_on_slash(self, slash: SlashView, now: Moment) -> None:
        """On one that was requested."""
        round_ = self._node.view.round(slash.round)
        if round_ is None or slash.status is not SlashStatus.REQUESTED:
            return
        slashing, place = self._node.job.contracts.slashing, place_of(self._rank, slash.round)
        replayed = self._store.second_replay(slash.round, slash.client)
        if replayed and now.head + 1 < slash.executable_at:
            found = two_acquittals(self._node.peers, self._node.job, round_, slash.client)
            if found is not None:
                call = slashing.veto_with_acquittals(round_.id, slash.client, found)
                self._node.send(call, f"acquit {slash.round} {slash.client}")
            return
        confirmed = slash.reason is not Reason.REPLAY_OUTSIDE or replayed is False
        # Nobody can veto any more. If a peer kept us from a second replay, the first one stands.
        confirmed |= replayed is None and now.head >= self._end_of_patience(slash)
        if confirmed and is_due(place, slash.executable_at - 1, now.head):
            call = slashing.execute(round_.id, slash.client)
            self._node.send(call, f"execute {slash.round} {slash.client}")

    def awaits_second_replay(self, slash: SlashView, now: Moment) -> bool:
        """Not for ever: a peer that does not come to it must not keep us from leaving."""
        return (
            slash.status is SlashStatus.REQUESTED
            and now.head < self._end_of_patience(slash)
            and slash.reason is Reason.REPLAY_OUTSIDE
            and self._store.second_replay(slash.round, slash.client) is None
            and self._store.delivery(slash.round, slash.client) is not None
        )

    def has_requested_all(self, round_: RoundView, now: Moment) -> bool:
        """Whether all slashes for failed replays are there that a round will have."""
        if now.head >= round_.schedule.request:
            return True
        view, verdict = self._node.view, self._node.view.decided_verdict(round_)
        addresses = {client.index: client.address for client in view.clients().values()}
        return verdict is not None and all(
            view.slash(round_.number, addresses[fault.client]) is not None
            for fault in verdict.faults
            if fault.reason is FaultReason.REPLAY_OUTSIDE and fault.client in addresses
        )

    def _end_of_patience(self, slash: SlashView) -> int:
        return slash.executable_at + self._node.job.terms.phases.veto

    def _request(self, round_: RoundView, now: Moment) -> None:
        view = self._node.view
        verdict = view.decided_verdict(round_)
        if verdict is None or not verdict.faults:
            return
        addresses = {client.index: client.address for client in view.clients().values()}
        encoded = Verdict(verdict.passes_bytes, verdict.faults_bytes)
        for position, fault in enumerate(verdict.faults):
            client = addresses.get(fault.client)
            if client is None or view.slash(round_.number, client) is not None:
                continue
            call = self._node.job.contracts.slashing.request(
                round_.id, client, encoded, position, self._proof(round_, client)
            )
            self._node.send(call, f"request {round_.number} {client}")

    def _proof(self, round_: RoundView, client: Address) -> BatchProof:
        if self._node.view.direct_commitment(round_.id, client) is not None:
            return _DIRECT
        batch = self._claims.batch(round_)
        return (batch and batch.proof(client)) or _DIRECT

    def _penalise(self, round_: RoundView, now: Moment, place: int) -> None:
        for _, member in self._node.peers.others(self._node.address):
            for fault, since in self._faults(round_, member, now):
                known = self._node.view.is_penalised(round_.id, member, fault)
                if not known and is_due(place, since, now.head):
                    call = self._node.job.contracts.slashing.penalise_member(
                        round_.id, member, fault
                    )
                    self._node.send(call, f"penalise {round_.number} {member} {fault.name}")

    def _faults(
        self, round_: RoundView, member: Address, now: Moment
    ) -> list[tuple[MemberFault, int]]:
        """What shows on chain that a member did wrong, and since when."""
        view, decided_at = self._node.view, round_.decided_at or 0
        attested = view.attestations(round_.id).get(member)
        found = []
        overdue = round_.seed is None and now.seen > round_.schedule.beacon
        if overdue and member not in view.published_partials(round_.id):
            found.append((MemberFault.BEACON_WITHHELD, decided_at))
        if attested is not None and attested != round_.verdict_hash:
            found.append((MemberFault.VERDICT_DISSENT, decided_at))
        if attested is None and now.seen > round_.schedule.attest:
            found.append((MemberFault.VERDICT_SILENCE, round_.schedule.attest))
        return found
