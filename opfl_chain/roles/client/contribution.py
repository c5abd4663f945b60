"""The contributions of a client: local steps, commitments and shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.data.partition import ClientData, split_dirichlet, split_iid
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.registry import advice_format_of
from opfl_chain.protocol.advice import advise
from opfl_chain.protocol.commitments import Subject
from opfl_chain.protocol.delivery import Delivery, InputDelivery
from opfl_chain.protocol.hashing import MerkleTree, keccak256
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.shares import Committed, SharePackage, commit, share_advice
from opfl_chain.roles.client.conduct import Conduct, FinishedStep, LocalContribution, Vector
from opfl_chain.roles.settings import DataSettings, NodeError
from opfl_chain.rules.boundary import Boundary


def load_client_data(policy: Policy, settings: DataSettings, conduct: Conduct) -> ClientData:
    """Load the examples that the client commits to, with the labels that it claims."""
    if settings.part >= settings.parts:
        raise NodeError(
            f"data.part is {settings.part} and data.parts is {settings.parts}: parts are numbered"
            " from 0"
        )
    dataset = load_dataset(settings.dataset, settings.data_dir)
    seed, batch = policy.seeds.data, policy.data.batch_size
    if settings.split == "iid":
        parts = split_iid(len(dataset.train), settings.parts, seed, minimum=batch)
    else:
        labels = dataset.train.labels
        parts = split_dirichlet(labels, settings.parts, settings.alpha, seed, minimum=batch)
    examples = dataset.train.take(parts[settings.part])
    labels = conduct.training_labels(examples.labels, policy.data.classes)
    return ClientData(policy, replace(examples, labels=labels), settings.part)


class Batches(Protocol):
    """The batches of one client, by round."""

    def batch(self, t: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the examples and labels of round t for the local step."""

    def input_words(self, t: int) -> Words:
        """Return the batch as ring words, which the client commits to and shares if audited."""


class Contributor:
    """Trains, commits and shares for one client. `secret` is random and never leaves it.

    All randomness of a round is derived from the secret, so that a restarted client makes the same
    commitment again.
    """

    def __init__(
        self,
        policy: Policy,
        boundary: Boundary,
        data: Batches,
        secret: bytes,
        conduct: Conduct,
        *,
        rounds: int,
        threads: int = 1,
    ) -> None:
        self._policy = policy
        self._boundary = boundary
        self._rounds = rounds
        self._data = data
        self._secret = secret
        self._conduct = conduct
        self._step = LocalStep.of_policy(policy, threads=threads)
        self._advice = advice_format_of(policy)

    @property
    def parameters(self) -> int:
        """Number of values in the model."""
        return self._step.model.layout.size

    @cached_property
    def dataset(self) -> MerkleTree:
        """Tree over the inputs of all rounds of the job."""
        return dataset_tree(self.committed_input(t).commitment for t in range(self._rounds))

    def committed_input(self, t: int) -> Committed:
        entropy = self._entropy("input", t)
        words = self._data.input_words(t)
        return commit(self._policy.commitment_scheme, Subject.INPUT, words, entropy)

    def warm(self) -> None:
        """Run a step and discard it: the first is slow, and rounds have deadlines."""
        examples, labels = self._data.batch(0)
        nothing = np.zeros(self.parameters, np.float32)
        self._step.run(self._step.model.layout.unflatten(nothing), examples, labels)

    def make(self, t: int, weights: NDArray[np.float32], memory: bytes) -> LocalContribution:
        """Take the local step of round t at these weights, with the memory of the last round."""
        examples, labels = self._data.batch(t)
        arrays = self._step.model.layout.unflatten(weights)
        advised = self._policy.replay.advised
        result = self._step.run(arrays, examples, labels, pre_activations=advised)
        finished = FinishedStep(
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
        gradient, memory = self._conduct.gradient(finished, memory)
        advice = None
        if self._advice is not None:
            masks = np.concatenate([mask.ravel() for mask in result.masks.values()])
            told = advise(masks, result.logits, labels, self._policy.largest_lift)
            advice = self._advice.encode(told)
        return LocalContribution(np.asarray(gradient, np.float32), advice, memory)

    def committed_gradient(self, t: int, gradient: Vector) -> Committed:
        named = self._step.model.layout.trainable.unflatten(gradient)
        words = self._policy.fixed_point.encode(named)
        entropy = self._entropy("gradient", t)
        return commit(self._policy.commitment_scheme, Subject.GRADIENT, words, entropy)

    def deliveries(
        self, t: int, contribution: LocalContribution, *, audited: bool
    ) -> Sequence[Delivery]:
        """Deliveries by member rank. The input is only shared when it is audited."""
        gradients = self.committed_gradient(t, contribution.gradient).packages
        if not audited:
            return [Delivery(package) for package in gradients]
        given = self.committed_input(t)
        proof = tuple(self.dataset.proof(t))
        advised: Sequence[SharePackage | None] = (None, None, None)
        if contribution.advice is not None:
            entropy = self._entropy("input", t)
            advised = share_advice(self._policy.commitment_scheme, contribution.advice, entropy)
        return [
            Delivery(gradient, InputDelivery(package, given.commitment, proof), advice)
            for gradient, package, advice in zip(gradients, given.packages, advised, strict=True)
        ]

    def _entropy(self, purpose: str, t: int) -> bytes:
        return keccak256(self._secret, purpose.encode(), t.to_bytes(8, "big"))
