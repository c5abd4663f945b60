"""What a client makes in one round: a gradient, its commitment, and the parts of a delivery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opfl_chain.attacks.attack import Attack, AttackedStep
from opfl_chain.attacks.state import AttackState
from opfl_chain.models.advice import advice_format_of
from opfl_chain.nodes.job import Job
from opfl_chain.protocol.advice import advise
from opfl_chain.protocol.committed import Committed, commit, share_advice
from opfl_chain.protocol.dataset import dataset_tree
from opfl_chain.protocol.delivery import Delivery, InputDelivery
from opfl_chain.protocol.gradient import Subject
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.merkle import MerkleTree
from opfl_chain.protocol.policy import GuidedReplay
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.ring_shares import SharePackage
from opfl_chain.training.client_data import ClientData
from opfl_chain.training.local_step import LocalStep


@dataclass(frozen=True, eq=False)
class Made:
    """What is kept of a round until it is over. With the client's secret it makes everything."""

    gradient: Words
    advice: Words | None
    attack_state: bytes


class Contributor:
    """Trains, commits and shares for one client. `secret` is random and never leaves it.

    All randomness of a round is derived from the secret, so that a client that was killed makes the
    same commitment again.
    """

    def __init__(
        self,
        job: Job,
        data: ClientData,
        secret: bytes,
        *,
        threads: int = 1,
        attack: Attack | None = None,
    ) -> None:
        self._policy = job.policy
        self._boundary = job.boundary
        self._rounds = job.terms.rounds
        self._data = data
        self._secret = secret
        self._attack = attack
        self._step = LocalStep.of_policy(job.policy, threads=threads)
        self._advice = advice_format_of(job.policy)

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        return self._step.model.layout.size

    @property
    def zero_gradient(self) -> Words:
        return np.zeros(self._step.model.layout.trainable.size, dtype="<i8")

    @cached_property
    def dataset(self) -> MerkleTree:
        """Of the inputs of all rounds that the job has."""
        return dataset_tree(self.committed_input(t).commitment for t in range(self._rounds))

    def committed_input(self, t: int) -> Committed:
        entropy = self._entropy("input", t)
        words = self._data.input_words(t)
        return commit(self._policy.commitment_scheme, Subject.INPUT, words, entropy)

    def warm(self) -> None:
        """Take a step that counts for nothing: the first is slow, and rounds have deadlines."""
        examples, labels = self._data.batch(0)
        nothing = np.zeros(self.parameters, np.float32)
        self._step.run(self._step.model.layout.unflatten(nothing), examples, labels)

    def make(self, t: int, weights: NDArray[np.float32], attack_state: bytes | None) -> Made:
        """Take the local step of round t at these weights."""
        examples, labels = self._data.batch(t)
        arrays = self._step.model.layout.unflatten(weights)
        guided = isinstance(self._policy.replay, GuidedReplay)
        result = self._step.run(arrays, examples, labels, pre_activations=guided)
        gradient, memory = result.gradient, AttackState()
        if self._attack is not None:
            if attack_state is not None:
                memory = AttackState.from_bytes(attack_state)
            attacked = AttackedStep(
                t,
                self._policy,
                weights,
                examples,
                labels,
                result.gradient,
                result.logits,
                lambda images, others: self._step.run(arrays, images, others).gradient,
                self._boundary,
            )
            gradient = self._attack.submit(attacked, memory)
        advice = None
        if self._advice is not None:
            masks = np.concatenate([mask.ravel() for mask in result.masks.values()])
            told = advise(masks, result.logits, labels, self._policy.largest_lift)
            advice = self._advice.encode(told)
        named = self._step.model.layout.trainable.unflatten(gradient)
        return Made(self._policy.fixed_point.encode(named), advice, memory.to_bytes())

    def committed_gradient(self, t: int, gradient: Words) -> Committed:
        entropy = self._entropy("gradient", t)
        return commit(self._policy.commitment_scheme, Subject.GRADIENT, gradient, entropy)

    def deliveries(self, t: int, made: Made, *, audited: bool) -> Sequence[Delivery]:
        """For each member, by rank. The input is only shared when it is audited."""
        gradients = self.committed_gradient(t, made.gradient).packages
        if not audited:
            return [Delivery(package) for package in gradients]
        given = self.committed_input(t)
        proof = tuple(self.dataset.proof(t))
        advised: Sequence[SharePackage | None] = (None, None, None)
        if made.advice is not None:
            entropy = self._entropy("input", t)
            advised = share_advice(self._policy.commitment_scheme, made.advice, entropy)
        return [
            Delivery(gradient, InputDelivery(package, given.commitment, proof), advice)
            for gradient, package, advice in zip(gradients, given.packages, advised, strict=True)
        ]

    def _entropy(self, purpose: str, t: int) -> bytes:
        return keccak256(self._secret, purpose.encode(), t.to_bytes(8, "big"))
