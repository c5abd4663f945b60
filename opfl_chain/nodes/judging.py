"""What a member finds out about the contributions of a round: together with its peers, or alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from opfl_chain.mpc.judgement import Rules, judge
from opfl_chain.mpc.party import PartySession
from opfl_chain.mpc.replays import Replays
from opfl_chain.nodes.chain_view import RoundView
from opfl_chain.nodes.claims import Claims
from opfl_chain.nodes.job import Job
from opfl_chain.nodes.member_store import MemberStore
from opfl_chain.nodes.models import Models
from opfl_chain.protocol.aggregate import FEWEST_CONTRIBUTIONS, sum_components
from opfl_chain.protocol.delivery import Claim, Delivery, Held, check_delivery, fault_of
from opfl_chain.protocol.delivery_message import decode_delivery
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.gradient import Scheme
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.verdict import FaultReason, Verdict

WARM_SIZES = (1, 2, 4)
"""How many contributions are usually audited at once: compiled before the first round."""


class Judging:
    """One member's part in judging."""

    def __init__(
        self, job: Job, rank: int, store: MemberStore, claims: Claims, models: Models
    ) -> None:
        self._replays = Replays(job.policy)
        self.rules = Rules.of(job.policy, job.boundary, self._replays)
        self.expected = self.rules.expected(rank)
        self._store = store
        self._claims = claims
        self._models = models
        self._summed: tuple[int, bytes, Held] | None = None

    def warm(self) -> None:
        """Have the replays compiled that most rounds need."""
        for size in WARM_SIZES:
            self._replays(size)

    def missing(self, round_: RoundView) -> set[Address]:
        """Clients that are in the round and have delivered nothing to us, as far as is known."""
        return set(self._claims.of(round_)) - self._store.delivered(round_.number)

    def together(self, session: PartySession, round_: RoundView) -> Verdict:
        """Judge a whole round with the peers."""
        claims = self._claims.of(round_)
        deliveries = self._deliveries(round_, claims)
        judgement = judge(
            session, self.rules, self._weights(round_), list(claims.values()), deliveries
        )
        verdict = judgement.verdict
        if len(judgement.accepted) >= FEWEST_CONTRIBUTIONS:
            total = sum_components(list(judgement.accepted.values()))
            self._summed = round_.number, verdict.hash, total
        self._store.keep_judgement(round_.number, verdict)
        return verdict

    def once_more(
        self, session: PartySession, round_: RoundView, clients: Collection[Address]
    ) -> set[Address]:
        """Replay contributions with fresh randomness; returns those that are inside now."""
        claims = {c: claim for c, claim in self._claims.of(round_).items() if c in clients}
        deliveries = self._deliveries(round_, claims)
        verdict = judge(
            session, self.rules, self._weights(round_), list(claims.values()), deliveries
        ).verdict
        passed = {client for client, claim in claims.items() if claim.client in verdict.passed}
        for client in claims:
            self._store.keep_second_replay(round_.number, client, passed=client in passed)
        return passed

    def alone(self, round_: RoundView) -> Verdict:
        """What stands without MPC, for when a peer is not there.

        Who would have to be replayed is left out of the aggregate and charged with nothing.
        """
        passed: set[ClientIndex] = set()
        faults: dict[ClientIndex, FaultReason] = {}
        claims = self._claims.of(round_)
        deliveries = self._deliveries(round_, claims)
        for claim in claims.values():
            try:
                check_delivery(self.expected, claim, deliveries.get(claim.client))
            except ProtocolError as error:
                faults[claim.client] = fault_of(error)
                continue
            if not claim.audited and self.expected.scheme is Scheme.SHARES:
                passed.add(claim.client)
        return Verdict.of(passed, faults)

    def summed(self, round_: RoundView, verdict: Verdict) -> Held | None:
        """Our components of the sum of all that passed, or None if some of it is not here.

        Those of our own verdict were checked and added up when it was found.
        """
        if self._summed is not None and self._summed[:2] == (round_.number, verdict.hash):
            return self._summed[2]
        claims = [
            (client, claim)
            for client, claim in self._claims.of(round_).items()
            if claim.client in verdict.passed
        ]
        if len(claims) != len(verdict.passed) or len(claims) < FEWEST_CONTRIBUTIONS:
            return None
        total: Held | None = None
        for client, claim in claims:  # one after the other: together they may not fit into memory
            try:
                found = self._components(round_, client, claim)
            except ProtocolError:
                return None
            total = found if total is None else sum_components([total, found])
        return total

    def _components(self, round_: RoundView, client: Address, claim: Claim) -> Held:
        """What we hold of one gradient, checked, and without a salt."""
        words = self.rules.boundary.coordinates
        delivery = self._deliveries(round_, {client: claim}).get(claim.client)
        own, following = check_delivery(self.expected, claim, delivery).gradient
        return own[:words], following[:words]

    def _deliveries(
        self, round_: RoundView, claims: Mapping[Address, Claim]
    ) -> dict[ClientIndex, Delivery]:
        found = {}
        for client, claim in claims.items():
            if (body := self._store.delivery(round_.number, client)) is not None:
                found[claim.client] = decode_delivery(body, self.expected)
        return found

    def _weights(self, round_: RoundView) -> dict[str, NDArray[np.float32]]:
        weights: dict[str, NDArray[np.float32]] = self._models.layout.unflatten(
            self._models.required(round_.model_hash)
        )
        return weights
