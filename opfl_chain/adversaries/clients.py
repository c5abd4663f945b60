"""Cheats of clients by name: attacks on gradients, false deliveries and forged proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from opfl_chain.adversaries.gradients.attack import Attack, AttackState, UnknownAttack
from opfl_chain.adversaries.gradients.registry import attack_named, forms
from opfl_chain.adversaries.provers import FalsePolynomials
from opfl_chain.protocol.delivery import Delivery, InputDelivery
from opfl_chain.protocol.proof.prover import Prover, Usage
from opfl_chain.roles.client.conduct import (
    Conduct,
    FinishedStep,
    Labels,
    LocalContribution,
    Sharing,
    Vector,
)
from opfl_chain.roles.settings import NodeError
from opfl_chain.system.plugins import Registry

T = TypeVar("T")


class CheatUnknown(NodeError):
    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"unknown cheat {name!r}. Known cheats: {', '.join(known)}.")


def cheats_of(kind: str, base: type[T], builtin: Mapping[str, type[T]]) -> Registry[type[T]]:
    """Return the registry of a kind of cheats, which are subclasses of an honest class.

    Plug-ins add theirs as entry points of the group `opfl_chain.cheats.<kind>`.
    """

    def is_cheat(found: Any) -> bool:
        return isinstance(found, type) and issubclass(found, base)

    group = f"opfl_chain.cheats.{kind}"
    return Registry(f"cheat ({kind})", group, builtin, CheatUnknown, is_cheat)


class WithholdsShares(Conduct):
    """Delivers nothing."""

    def deliveries(
        self, sharing: Sharing, t: int, contribution: LocalContribution, *, audited: bool
    ) -> Sequence[Delivery]:
        del sharing, t, contribution, audited
        return []


class OpensAnotherGradient(Conduct):
    """Delivers shares of a zero gradient, whatever it committed to."""

    def deliveries(
        self, sharing: Sharing, t: int, contribution: LocalContribution, *, audited: bool
    ) -> Sequence[Delivery]:
        honest = super().deliveries(sharing, t, contribution, audited=audited)
        other = sharing.committed_gradient(t, np.zeros_like(contribution.gradient)).packages
        return [
            replace(delivery, gradient=package)
            for delivery, package in zip(honest, other, strict=True)
        ]


class DeliversAnotherInput(Conduct):
    """Delivers the input of another round, which is at another place in the data set."""

    def deliveries(
        self, sharing: Sharing, t: int, contribution: LocalContribution, *, audited: bool
    ) -> Sequence[Delivery]:
        honest = super().deliveries(sharing, t, contribution, audited=audited)
        if not audited:
            return honest
        place = t + 1 if t == 0 else t - 1
        given, proof = sharing.committed_input(place), tuple(sharing.dataset.proof(place))
        return [
            replace(delivery, training_input=InputDelivery(package, given.commitment, proof))
            for delivery, package in zip(honest, given.packages, strict=True)
        ]


DELIVERIES: Final = cheats_of(
    "deliveries",
    Conduct,
    {
        "withhold-shares": WithholdsShares,
        "wrong-opening": OpensAnotherGradient,
        "other-input": DeliversAnotherInput,
    },
)


class AttackingConduct(Conduct):
    """Commits to the data and gradients of an attack. Its memory is the state of the attack."""

    def __init__(self, attack: Attack) -> None:
        self._attack = attack

    def training_labels(self, labels: Labels, classes: int) -> Labels:
        return self._attack.training_labels(labels, classes)

    def gradient(self, step: FinishedStep, memory: bytes) -> tuple[Vector, bytes]:
        state = AttackState.from_bytes(memory) if memory else AttackState()
        submitted = self._attack.submit(step, state)
        return submitted, state.to_bytes()

    def takes_part(self, usage: Usage) -> bool:
        """Take part even if an audit would find the attack."""
        del usage
        return True


class ForgesProof(AttackingConduct):
    """Commits to ten times its gradient, and forges the polynomials of its proof."""

    def __init__(self) -> None:
        super().__init__(attack_named("amplify:10"))

    def prover(self, *given: Any) -> Prover:
        return FalsePolynomials(*given)


PROOFS: Final = cheats_of("proofs", Conduct, {"forge": ForgesProof})


def conduct_named(cheat: str) -> Conduct:
    """Return the conduct of a client with this cheat: a false delivery or proof, or an attack."""
    for cheats in (DELIVERIES, PROOFS):
        if cheat in cheats:
            return cheats[cheat]()
    try:
        return AttackingConduct(attack_named(cheat))
    except UnknownAttack:
        raise UnknownAttack(cheat, client_cheats()) from None


def client_cheats() -> list[str]:
    """Return the forms of all names that `conduct_named` knows."""
    return [*forms(), *DELIVERIES.names(), *PROOFS.names()]


def cheats_in(cheat: str, t: int, first: int) -> bool:
    """Return whether a client with this cheat, in the job since round `first`, cheats in round t.

    Some attacks are honest now and then.
    """
    return cheat in DELIVERIES or cheat in PROOFS or attack_named(cheat).cheats_in(t, first)
