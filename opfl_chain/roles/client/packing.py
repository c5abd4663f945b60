"""Bundles of a client for one opening of a round: filled, sealed to its seats, and signed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from opfl_chain.protocol.bundle import Bundle, Parts, context
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.shares import Committed
from opfl_chain.protocol.statements import Answer, Contribution, Statement
from opfl_chain.roles.client.conduct import LocalContribution, Parcel, Vector
from opfl_chain.roles.client.contribution import Contributor
from opfl_chain.roles.job import Job
from opfl_chain.roles.view.records import RoundView

PATHS: Final = {BundleKind.CONTRIBUTION: "contributions", BundleKind.ANSWER: "answers"}
"""The name of each kind in the paths of members."""


class Packing:
    """The `Sharing` of a conduct."""

    def __init__(
        self,
        job: Job,
        round_: RoundView,
        client: Address,
        sealing_keys: Sequence[bytes],
        contributor: Contributor,
        made: LocalContribution,
        sign: Callable[[Statement], bytes],
    ) -> None:
        """`sealing_keys` are those of the members in the seats of the round."""
        self._job = job
        self._round = round_
        self._client = client
        self._sealing_keys = sealing_keys
        self._contributor = contributor
        self._sign = sign
        self.made = made

    @property
    def number(self) -> int:
        return self._round.number

    def committed_gradient(self, gradient: Vector) -> Committed:
        return self._contributor.committed_gradient(self._round.opening, gradient)

    def parts(self, kind: BundleKind, t: int | None = None) -> Parts:
        place = self.number if t is None else t
        return self._contributor.parts(kind, place, self._round.opening, self.made)

    def seal(self, kind: BundleKind, parts: Parts) -> Bundle:
        opening = self._round.opening
        place = context(self._job.domain.separator, self._round.id, opening, self._client, kind)
        return self._contributor.seal(kind, opening, place, parts, self._sealing_keys)

    def sign(self, bundle: Bundle) -> Parcel:
        kind = Contribution if bundle.kind is BundleKind.CONTRIBUTION else Answer
        round_, content_hash = self._round, bundle.content_hash
        statement = kind(self._job.id, round_.number, round_.opening, self._client, content_hash)
        return Parcel(content_hash, bundle.encode(), self._sign(statement))
