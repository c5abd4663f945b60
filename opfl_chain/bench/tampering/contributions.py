"""Proved contributions of honest, cheating and forging clients, and all answers on them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from opfl_chain.adversaries.provers import PROVERS
from opfl_chain.lab.calibration.replayer import shared
from opfl_chain.lab.sample_step import ProvedSample
from opfl_chain.learning.model import Model
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.protocol.audit_exchange import Answers, Report, ReportRow
from opfl_chain.protocol.hashing import sha256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofComponent, ProofPackage
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.shares import HASH_BYTES, SharedVector

Client = Literal["honest", "cheating", "forging"]
MOVE: Final = 1e-3
"""The part of its norm by which a cheat moves its gradient."""
SUBJECT: Final = sha256(b"a benchmark's round")
CLIENT: Final = ClientIndex(0)
"""The one client that a session is about."""


CLIENTS: Final[Sequence[tuple[Client, str]]] = (
    ("honest", "plain proof"),
    ("cheating", "plain proof"),
    *(("forging", name) for name in PROVERS if name != "plain proof"),
)
"""The clients, and how they prove."""


@dataclass(frozen=True, eq=False)
class Proved:
    """A proved contribution, and what honest members say about it, by rank."""

    client: Client
    name: str
    context: bytes
    query: Query
    packages: Sequence[ProofPackage]
    gradient: SharedVector
    training_input: SharedVector
    answers: tuple[Answers, ...]

    @property
    def right(self) -> bool:
        """The right verdict."""
        return self.client == "honest"

    @property
    def total(self) -> Answer:
        """The sum of all answers."""
        first, second, third = (each.own for each in self.answers)
        return first + second + third

    def report(self, rank: int) -> Report:
        return Report(rank, SUBJECT, {CLIENT: ReportRow(self.answers[rank].commitment)})

    def referee(self, components: Sequence[int]) -> dict[int, Answer]:
        """Return what a standby answers for components, from the words that it is handed."""
        rings = self.gradient.components, self.training_input.components
        return {
            index: self.query.answer(self.component(index), *(ring[index] for ring in rings))
            for index in components
        }

    def component(self, index: int) -> ProofComponent:
        held = (part for package in self.packages for part in package.held)
        return next(part for part in held if part.index == index)


def proved(model: Model, client: Client, prover: str, seed: int) -> Proved:
    """Make a contribution, and all answers on it. Clients that are not honest move G."""
    sample = ProvedSample(model, seed)
    words = sample.gradient if client == "honest" else _moved(sample.gradient, seed)
    return contribution(sample, words, client, prover, PROVERS[prover])


def contribution(
    sample: ProvedSample,
    words: NDArray[np.int64],
    client: Client,
    name: str,
    make: Callable[..., Prover],
) -> Proved:
    """Prove that a gradient is that of a step, and answer."""
    statement = statement_of(sample.policy, sample.proved_boundary.tolerance, sample.weights)
    gradient, training_input = shared(words), shared(sample.training_input)
    context, entropy = secrets.token_bytes(HASH_BYTES), secrets.token_bytes(HASH_BYTES)
    rings = gradient.components, training_input.components
    packages = make(statement, context, entropy, *rings).prove().packages
    query = Query.of(statement, context, packages[0].leaves)
    return Proved(
        client,
        name,
        context,
        query,
        packages,
        gradient,
        training_input,
        tuple(_answers(rank, query, packages[rank], gradient, training_input) for rank in range(3)),
    )


def _moved(gradient: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    direction = np.random.default_rng(seed).standard_normal(gradient.size)
    norm = np.linalg.norm(gradient.astype(np.float64))
    direction *= MOVE * norm / np.linalg.norm(direction)
    moved: NDArray[np.int64] = gradient + direction.astype(np.int64)
    return moved


def _answers(
    rank: int,
    query: Query,
    package: ProofPackage,
    gradient: SharedVector,
    training_input: SharedVector,
) -> Answers:
    held = zip(package.held, gradient.held_by(rank), training_input.held_by(rank), strict=True)
    found = {part.index: query.answer(part, own, given) for part, own, given in held}
    return Answers.of(rank, found)
