"""Cheats of clients by name: attacks on gradients, false bundles, both at once, forged proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from opfl_chain.adversaries.gradients.attack import Attack, AttackState, UnknownAttack
from opfl_chain.adversaries.gradients.registry import attack_named, forms
from opfl_chain.adversaries.provers import FalsePolynomials
from opfl_chain.protocol.bundle import Bundle, contribution_parts
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.proof.prover import Prover, Usage
from opfl_chain.protocol.signatures import CURVE_ORDER
from opfl_chain.roles.client.conduct import (
    Conduct,
    FinishedStep,
    Labels,
    Parcel,
    Sharing,
    Vector,
)
from opfl_chain.roles.settings import NodeError
from opfl_chain.system.plugins import Registry

T = TypeVar("T")
Parcels = Mapping[int, Parcel]
"""Bundles as they are sent, by seat."""
JOINED_BY: Final = "+"
"""Joins an attack on gradients and a false delivery: `scale:10+evade`."""


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

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        del sharing, kind
        return {}


class WithholdsAnswer(Conduct):
    """Contributes, and does not answer its audit."""

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        return {} if kind is BundleKind.ANSWER else super().parcels(sharing, kind)


class AnswersTwo(Conduct):
    """Answers its audit to two members only."""

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        sent = super().parcels(sharing, kind)
        return _to(sent, 0, 1) if kind is BundleKind.ANSWER else sent


class DeliversToOne(Conduct):
    """Delivers to two members, and answers to one of them."""

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        sent = super().parcels(sharing, kind)
        return _to(sent, 0) if kind is BundleKind.ANSWER else _to(sent, 0, 1)


class OpensAnotherGradient(Conduct):
    """Sends components of a zero gradient under the leaf hashes of the one it commits to."""

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        if kind is BundleKind.ANSWER:
            return super().parcels(sharing, kind)
        zero = contribution_parts(sharing.committed_gradient(np.zeros_like(sharing.made.gradient)))
        false = replace(sharing.parts(kind), plaintexts=zero.plaintexts)
        return _to_all(sharing.sign(sharing.seal(kind, false)))


class CommitsToAnother(Conduct):
    """States the commitment to its gradient over the leaf hashes of a zero gradient."""

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        if kind is BundleKind.ANSWER:
            return super().parcels(sharing, kind)
        zero = contribution_parts(sharing.committed_gradient(np.zeros_like(sharing.made.gradient)))
        false = replace(zero, commitment=sharing.parts(kind).commitment)
        return _to_all(sharing.sign(sharing.seal(kind, false)))


class AnswersWithAnotherInput(Conduct):
    """Answers with the input of another round, which is at another place in the data set."""

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        if kind is BundleKind.CONTRIBUTION:
            return super().parcels(sharing, kind)
        place = sharing.number + 1 if sharing.number == 0 else sharing.number - 1
        return _to_all(sharing.sign(sharing.seal(kind, sharing.parts(kind, place))))


class SpoilsEnvelopes(Conduct):
    """Seals another key to the member in seat 0, in its contribution."""

    KIND = BundleKind.CONTRIBUTION
    ENVELOPES = 1

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        if kind is not self.KIND:
            return super().parcels(sharing, kind)
        false = spoiled(sharing.seal(kind, sharing.parts(kind)), self.ENVELOPES)
        return _to_all(sharing.sign(false))


class SpoilsForTwo(SpoilsEnvelopes):
    """Seals another key to both holders of component 0, in its contribution."""

    ENVELOPES = 2


class SpoilsAnswer(SpoilsEnvelopes):
    """Seals another key to the member in seat 0, in its answer."""

    KIND = BundleKind.ANSWER


class SendsTwo(Conduct):
    """Sends seat 0 another contribution than the others, under a second signature."""

    KIND = BundleKind.CONTRIBUTION

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        sent = super().parcels(sharing, kind)
        if kind is not self.KIND:
            return sent
        other = sharing.sign(spoiled(sharing.seal(kind, sharing.parts(kind))))
        return {**sent, 0: other}


class AnswersDifferently(SendsTwo):
    """Sends seat 0 another answer than the others."""

    KIND = BundleKind.ANSWER


class AnswersOnceForAll(Conduct):
    """Sends its first answer, signature included, in every later audit as well."""

    def __init__(self) -> None:
        self._first: Parcels = {}

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        sent = super().parcels(sharing, kind)
        if kind is BundleKind.ANSWER:
            self._first = self._first or sent
            return self._first
        return sent


class SignsWithHighS(Conduct):
    """Signs all bundles with the twin of its signature that contracts refuse."""

    KINDS: tuple[BundleKind, ...] = tuple(BundleKind)

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        sent = super().parcels(sharing, kind)
        if kind not in self.KINDS:
            return sent
        return {
            seat: replace(parcel, signature=with_high_s(parcel.signature))
            for seat, parcel in sent.items()
        }


class AnswersWithHighS(SignsWithHighS):
    """Signs its answers alone in this way, so that it is on the roll."""

    KINDS = (BundleKind.ANSWER,)


DELIVERIES: Final = cheats_of(
    "deliveries",
    Conduct,
    {
        "withhold-shares": WithholdsShares,
        "withhold-answer": WithholdsAnswer,
        "evade": AnswersTwo,
        "split": DeliversToOne,
        "wrong-opening": OpensAnotherGradient,
        "wrong-commitment": CommitsToAnother,
        "other-input": AnswersWithAnotherInput,
        "spoil-shares": SpoilsEnvelopes,
        "spoil-two": SpoilsForTwo,
        "spoil-answer": SpoilsAnswer,
        "two-contributions": SendsTwo,
        "two-answers": AnswersDifferently,
        "stale-answer": AnswersOnceForAll,
        "high-s": SignsWithHighS,
        "high-s-answer": AnswersWithHighS,
    },
)


class AttackingConduct(Conduct):
    """Commits to the data and gradients of an attack. Its memory is the state of the attack."""

    def __init__(self, attack: Attack, delivery: Conduct | None = None) -> None:
        """`delivery` is how it delivers, if not as an honest client does."""
        self._attack = attack
        self._delivery = delivery

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

    def parcels(self, sharing: Sharing, kind: BundleKind) -> Parcels:
        if self._delivery is None:
            return super().parcels(sharing, kind)
        return self._delivery.parcels(sharing, kind)


class ForgesProof(AttackingConduct):
    """Commits to ten times its gradient, and forges the polynomials of its proof."""

    def __init__(self) -> None:
        super().__init__(attack_named("amplify:10"))

    def prover(self, *given: Any) -> Prover:
        return FalsePolynomials(*given)


PROOFS: Final = cheats_of("proofs", Conduct, {"forge": ForgesProof})


def conduct_named(cheat: str) -> Conduct:
    """Return the conduct of a client with this cheat: a false delivery or proof, or an attack.

    An attack and a false delivery may be joined.
    """
    for cheats in (DELIVERIES, PROOFS):
        if cheat in cheats:
            return cheats[cheat]()
    attack, _, delivery = cheat.partition(JOINED_BY)
    try:
        return AttackingConduct(attack_named(attack), DELIVERIES[delivery]() if delivery else None)
    except UnknownAttack:
        raise UnknownAttack(cheat, client_cheats()) from None


def client_cheats() -> list[str]:
    """Return the forms of all names that `conduct_named` knows."""
    return [*forms(), *DELIVERIES.names(), *PROOFS.names()]


def cheats_in(cheat: str, t: int, first: int) -> bool:
    """Return whether a client with this cheat, in the job since round `first`, cheats in round t.

    Some attacks are honest now and then.
    """
    attack, _, delivery = cheat.partition(JOINED_BY)
    if cheat in DELIVERIES or cheat in PROOFS or delivery:
        return True
    return attack_named(attack).cheats_in(t, first)


def spoiled(bundle: Bundle, count: int = 1) -> Bundle:
    """Return a bundle whose first envelopes hold other keys.

    The first is of component 0 for seat 0, the second for the other holder of that component.
    """
    return replace(bundle, envelopes=(*[bytes(32)] * count, *bundle.envelopes[count:]))


def with_high_s(signature: bytes) -> bytes:
    """Return the twin of a canonical signature."""
    s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes([signature[64] ^ 7])


def _to_all(parcel: Parcel) -> Parcels:
    return dict.fromkeys(range(3), parcel)


def _to(parcels: Parcels, *seats: int) -> Parcels:
    return {seat: parcels[seat] for seat in seats}
