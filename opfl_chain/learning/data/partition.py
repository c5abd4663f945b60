"""A data set split among clients, each example to one of them.

The split depends on the seed alone, with one exception: the proportions of a Dirichlet split come
from numpy's PCG64 generator, whose derived distributions numpy may change in a new version.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.data.examples import Examples, features_of
from opfl_chain.learning.errors import BatchInvalid, SplitImpossible
from opfl_chain.learning.seeded import random_permutation
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring import Words

Indices = NDArray[np.int64]


def split_iid(count: int, clients: int, seed: int, *, minimum: int = 1) -> list[Indices]:
    """Split a shuffled data set into parts whose sizes differ by at most one."""
    _check(count, clients, minimum)
    return np.array_split(random_permutation(count, "split", seed), clients)


def split_dirichlet(
    labels: NDArray[np.int64], clients: int, alpha: float, seed: int, *, minimum: int = 1
) -> list[Indices]:
    """Divide each class in proportions from Dirichlet(alpha); a smaller alpha is more unequal.

    A client with fewer examples than the minimum gets the rest from those with most.
    """
    _check(len(labels), clients, minimum)
    if not (np.isfinite(alpha) and alpha > 0):
        raise SplitImpossible(f"alpha is {alpha}, it must be a positive number (usual: 0.1 to 10)")
    generator = np.random.Generator(np.random.PCG64(seed))
    parts: list[list[int]] = [[] for _ in range(clients)]
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        members = members[random_permutation(len(members), "split of class", seed, int(label))]
        shares = generator.dirichlet(np.full(clients, alpha))
        cuts = np.floor(np.cumsum(shares)[:-1] * len(members)).astype(int)
        for part, piece in zip(parts, np.split(members, cuts), strict=True):
            part.extend(piece.tolist())
    return [np.array(part, np.int64) for part in _levelled(parts, minimum)]


def _levelled(parts: list[list[int]], minimum: int) -> list[list[int]]:
    for part in parts:
        while len(part) < minimum:
            part.append(max(parts, key=len).pop())
    return parts


def _check(count: int, clients: int, minimum: int) -> None:
    if clients < 1 or minimum < 0:
        raise SplitImpossible(
            f"cannot split among {clients} clients with at least {minimum} examples each:"
            " at least one client and a minimum of 0 or more are needed"
        )
    if clients * max(minimum, 1) > count:
        raise SplitImpossible(
            f"{clients} clients with at least {max(minimum, 1)} examples each need"
            f" {clients * max(minimum, 1):,}, the data set has {count:,}"
        )


@dataclass(frozen=True)
class Schedule:
    """Batches drawn from epochs; each epoch is the client's examples in a new random order."""

    seed: int
    client: int
    examples: int
    batch_size: int

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.examples:
            raise BatchInvalid(
                f"client {self.client} has {self.examples:,} examples, for batches of"
                f" {self.batch_size:,}: a batch must have at least one example and at most all"
            )

    def indices(self, t: int) -> NDArray[np.int64]:
        """Return the positions of the batch of round t in the client's examples."""
        if t < 0:
            raise BatchInvalid(f"round is {t}, rounds are numbered from 0")
        places = range(t * self.batch_size, (t + 1) * self.batch_size)
        return np.array([self._at(*divmod(place, self.examples)) for place in places], np.int64)

    def _at(self, epoch: int, place: int) -> int:
        return int(_order(self.seed, self.client, self.examples, epoch)[place])


@lru_cache(maxsize=64)
def _order(seed: int, client: int, examples: int, epoch: int) -> NDArray[np.int64]:
    return random_permutation(examples, "epoch", seed, client, epoch)


class ClientData:
    """A client's examples under a policy. `client` is its number in the job."""

    def __init__(self, policy: Policy, examples: Examples, client: int) -> None:
        self.policy = policy
        self.examples = examples
        self.client = client

    @cached_property
    def schedule(self) -> Schedule:
        policy = self.policy
        return Schedule(policy.seeds.data, self.client, len(self.examples), policy.data.batch_size)

    def batch(self, t: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the examples and labels of round t for the local step."""
        chosen = self.examples.take(self.schedule.indices(t))
        return features_of(chosen.images, self.policy.data), chosen.labels

    def input_words(self, t: int) -> Words:
        """Return the batch as ring words, which the client commits to and shares if audited."""
        return self.policy.input_format.encode(*self.batch(t))
