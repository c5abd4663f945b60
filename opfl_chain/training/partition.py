"""A data set split among clients, each example to one of them.

Who gets what depends on the seed alone, with one exception: the proportions of a Dirichlet split
come from numpy's PCG64 generator, whose derived distributions numpy may change in a new version.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opfl_chain.training.errors import SplitImpossible
from opfl_chain.training.random_bits import random_permutation

Indices = NDArray[np.int64]


def split_iid(count: int, clients: int, seed: int, *, minimum: int = 1) -> list[Indices]:
    """Equal parts of a shuffled data set; their sizes differ by one at most."""
    _check(count, clients, minimum)
    return np.array_split(random_permutation(count, "split", seed), clients)


def split_dirichlet(
    labels: NDArray[np.int64], clients: int, alpha: float, seed: int, *, minimum: int = 1
) -> list[Indices]:
    """Each class divided in proportions from Dirichlet(alpha): the smaller, the more unequal.

    A client with fewer than the minimum gets the rest from those who have most.
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
            f"{clients} clients with at least {minimum} examples each is no split:"
            " there must be one client, and a minimum of 0 or more"
        )
    if clients * max(minimum, 1) > count:
        raise SplitImpossible(
            f"{clients} clients with at least {max(minimum, 1)} examples each need"
            f" {clients * max(minimum, 1):,}, the data set has {count:,}"
        )
