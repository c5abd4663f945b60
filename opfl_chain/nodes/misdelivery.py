"""How parties break the protocol, for demonstrations and tests: each by a name.

What a client may submit instead of its gradient is in `opfl_chain.attacks`. Here is what is left:
how it delivers, and what members and servers do wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opfl_chain.protocol.delivery import Delivery, InputDelivery

if TYPE_CHECKING:
    from opfl_chain.nodes.contribution import Contributor


def _nothing(
    deliveries: Sequence[Delivery], number: int, contributor: Contributor, audited: bool
) -> Sequence[Delivery]:
    del deliveries, number, contributor, audited
    return []


def _wrong_opening(
    deliveries: Sequence[Delivery], number: int, contributor: Contributor, audited: bool
) -> Sequence[Delivery]:
    """Shares of another gradient than the one that was committed to."""
    del audited
    other = contributor.committed_gradient(number, contributor.zero_gradient).packages
    return [
        replace(delivery, gradient=package)
        for delivery, package in zip(deliveries, other, strict=True)
    ]


def _other_input(
    deliveries: Sequence[Delivery], number: int, contributor: Contributor, audited: bool
) -> Sequence[Delivery]:
    """The input of another round, which is in the data set at another place."""
    if not audited:
        return deliveries
    place = number + 1 if number == 0 else number - 1
    given, proof = contributor.committed_input(place), tuple(contributor.dataset.proof(place))
    return [
        replace(delivery, training_input=InputDelivery(package, given.commitment, proof))
        for delivery, package in zip(deliveries, given.packages, strict=True)
    ]


Deliver = Callable[[Sequence[Delivery], int, "Contributor", bool], Sequence[Delivery]]

MISDELIVERIES: dict[str, Deliver] = {
    "withhold-shares": _nothing,
    "wrong-opening": _wrong_opening,
    "other-input": _other_input,
}


@dataclass(frozen=True)
class Misdelivery:
    """How a client delivers something else than it should."""

    name: str

    @classmethod
    def named(cls, name: str | None) -> Misdelivery | None:
        return cls(name) if name in MISDELIVERIES else None

    def deliveries(
        self,
        deliveries: Sequence[Delivery],
        number: int,
        contributor: Contributor,
        *,
        audited: bool,
    ) -> Sequence[Delivery]:
        return MISDELIVERIES[self.name](deliveries, number, contributor, audited)
