"""The contributions of a client: local steps, commitments and shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.data.partition import ClientData, split_dirichlet, split_iid
from opfl_chain.learning.errors import GradientNotFinite
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.proved_client import ProvedStep
from opfl_chain.learning.proved_step import proof_form
from opfl_chain.learning.registry import advice_format_of
from opfl_chain.protocol.advice import advise
from opfl_chain.protocol.bundle import Bundle, Parts, answer_parts, contribution_parts, seal
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.commitments import COMPONENTS, Subject
from opfl_chain.protocol.delivery import Delivery, InputDelivery
from opfl_chain.protocol.errors import ProtocolError, memory_for
from opfl_chain.protocol.hashing import MerkleTree, keccak256, sha256
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.protocol.proof.package import Packages as ProofPackages
from opfl_chain.protocol.proof.package import ProofForm, decode_all, encode_all
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.shares import (
    Committed,
    SharePackage,
    commit,
    components_of,
    share_advice,
)
from opfl_chain.roles.client.conduct import Conduct, FinishedStep, LocalContribution, Vector
from opfl_chain.roles.settings import DataSettings, NodeError
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.registry import rule_of


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


NameContribution = Callable[[int, bytes, bytes, bytes], bytes]
"""Names a contribution: of a round, its opening, and commitments to gradient and input."""


def unnamed(t: int, opening: bytes, gradient: bytes, training_input: bytes) -> bytes:
    """Name a contribution outside of any job."""
    return keccak256(t.to_bytes(8, "big"), opening, gradient, training_input)


class Contributor:
    """Trains, commits and shares for one client. `secret` is random and never leaves it.

    All randomness is derived from the secret, the opening of a round and what it hides: a restarted
    client makes the same contribution again, and a round that is opened again gets a new one. A
    client whose state was lost may train again and find other words. Under the same masks, members
    would see by how much they differ. Only the shares of an input are always the same: the data set
    is committed to before the first round.
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
        name_contribution: NameContribution = unnamed,
    ) -> None:
        """`name_contribution` returns the context of proofs in a job."""
        self._policy = policy
        self._boundary = boundary
        self._rounds = rounds
        self._data = data
        self._secret = secret
        self._conduct = conduct
        self._step = LocalStep.of_policy(policy, threads=threads)
        self._advice = advice_format_of(policy)
        self._name_contribution = name_contribution
        tolerance = rule_of(boundary).tolerance(boundary)
        self._proving: ProvedStep | None = None
        self._form: ProofForm | None = None
        if tolerance is not None:
            self._proving = ProvedStep(policy, tolerance, threads=threads)
            self._form = proof_form(policy, tolerance)

    @property
    def parameters(self) -> int:
        """Number of values in the model."""
        return self._step.model.layout.size

    @cached_property
    def dataset(self) -> MerkleTree:
        """Tree over the inputs of all rounds of the job."""
        return dataset_tree(self.committed_input(t).commitment for t in range(self._rounds))

    def committed_input(self, t: int) -> Committed:
        entropy = self._entropy("input", t.to_bytes(8, "big"))
        words = self._data.input_words(t)
        return commit(self._policy.commitment_scheme, Subject.INPUT, words, entropy)

    def warm(self) -> None:
        """Run a step and discard it: the first is slow, and rounds have deadlines."""
        examples, labels = self._data.batch(0)
        nothing = np.zeros(self.parameters, np.float32)
        self._step.run(self._step.model.layout.unflatten(nothing), examples, labels)

    def make(
        self, t: int, opening: bytes, weights: NDArray[np.float32], memory: bytes
    ) -> LocalContribution:
        """Take the local step of round t at these weights, with the memory of the last round.

        Weights may be beyond what a proof or the ring can hold: one contribution that nobody
        audited is enough. A client that proves its steps then sits the round out, as it does
        without memory for the proof.
        """
        if self._proving is None:
            return self._make(t, opening, weights, memory)
        try:
            with memory_for("the proof of our step"):
                return self._make(t, opening, weights, memory)
        except (ProtocolError, GradientNotFinite) as error:
            nothing = np.zeros(self._step.model.layout.trainable.size, np.float32)
            return LocalContribution(
                nothing, None, memory, refusal=f"the step cannot be proved: {error}"
            )

    def _make(
        self, t: int, opening: bytes, weights: NDArray[np.float32], memory: bytes
    ) -> LocalContribution:
        examples, labels = self._data.batch(t)
        arrays = self._step.model.layout.unflatten(weights)
        proved = self._proving.run(arrays, examples, labels) if self._proving else None
        advised = self._policy.replay.advised
        result = (
            proved.result
            if proved
            else self._step.run(arrays, examples, labels, pre_activations=advised)
        )
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
        gradient = np.asarray(gradient, np.float32)
        made = LocalContribution(gradient, advice, memory)
        return self._proved(t, opening, made, proved.statement) if proved else made

    def _proved(
        self, t: int, opening: bytes, made: LocalContribution, statement: Statement
    ) -> LocalContribution:
        """Prove the step, and evaluate its statement in the clear."""
        gradient, given = self.committed_gradient(opening, made.gradient), self.committed_input(t)
        context = self._name_contribution(t, opening, gradient.commitment, given.commitment)
        proof = self._conduct.prover(
            statement,
            context,
            self._entropy("proof", opening),
            components_of(gradient.packages),
            components_of(given.packages),
        ).prove()
        failures = tuple(proof.usage.failures())
        refusal = ""
        if not self._conduct.takes_part(proof.usage):
            refusal = f"an audit would reject our own step: {'; '.join(failures)}"
        kept = encode_all(proof.packages)
        return replace(made, proof=kept, refusal=refusal, failures=failures)

    def committed_gradient(self, opening: bytes, gradient: Vector) -> Committed:
        named = self._step.model.layout.trainable.unflatten(gradient)
        words = self._policy.fixed_point.encode(named)
        entropy = self._entropy("gradient", opening, sha256(words.tobytes()))
        return commit(self._policy.commitment_scheme, Subject.GRADIENT, words, entropy)

    def advice(self, opening: bytes, made: LocalContribution) -> Sequence[SharePackage] | None:
        """Shares of the advice by seat, if the replay is guided."""
        if made.advice is None:
            return None
        entropy = self._entropy("advice", opening, sha256(made.advice.tobytes()))
        return share_advice(self._policy.commitment_scheme, made.advice, entropy)

    def proof(self, made: LocalContribution) -> ProofPackages | None:
        """The proof by seat, if steps are proved."""
        if made.proof is None or self._form is None:
            return None
        return decode_all(made.proof, self._form)

    def parts(self, kind: BundleKind, t: int, opening: bytes, made: LocalContribution) -> Parts:
        """Return the content of a bundle. The input is only shared in an answer."""
        if kind is BundleKind.CONTRIBUTION:
            return contribution_parts(self.committed_gradient(opening, made.gradient))
        return answer_parts(
            self.committed_input(t),
            self.dataset.proof(t),
            self.advice(opening, made),
            self.proof(made),
        )

    def seal(
        self,
        kind: BundleKind,
        opening: bytes,
        context: bytes,
        parts: Parts,
        sealing_keys: Sequence[bytes],
    ) -> Bundle:
        """Seal a content to the members, whose sealing keys come by seat."""
        return seal(kind, context, parts, sealing_keys, self._entropy("bundle", opening))

    def deliveries(self, t: int, opening: bytes, made: LocalContribution) -> Sequence[Delivery]:
        """Return what the members have when they have opened contribution and answer, by seat."""
        gradient, given = self.committed_gradient(opening, made.gradient), self.committed_input(t)
        path = tuple(self.dataset.proof(t))
        nothing = (None,) * COMPONENTS
        return [
            Delivery(package, InputDelivery(training_input, given.commitment, path), advice, proof)
            for package, training_input, advice, proof in zip(
                gradient.packages,
                given.packages,
                self.advice(opening, made) or nothing,
                self.proof(made) or nothing,
                strict=True,
            )
        ]

    def _entropy(self, purpose: str, *of: bytes) -> bytes:
        return keccak256(self._secret, purpose.encode(), *of)
