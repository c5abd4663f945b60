"""Which examples a client trains on in which round.

A client commits to its inputs of all rounds before the first, so the choice is a function of seed,
client and round, and of nothing that happens later. An example is not used again until all were.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from opfl_chain.training.errors import BatchInvalid
from opfl_chain.training.random_bits import random_permutation


@dataclass(frozen=True)
class Schedule:
    """Batches from epochs, each of which is the client's examples in a new random order."""

    seed: int
    client: int
    examples: int
    batch_size: int

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.examples:
            raise BatchInvalid(
                f"client {self.client} has {self.examples:,} examples, for batches of"
                f" {self.batch_size:,}: a batch must be of one example at least and all at most"
            )

    def indices(self, t: int) -> NDArray[np.int64]:
        """Positions of the batch of round t in the client's examples."""
        if t < 0:
            raise BatchInvalid(f"round is {t}, rounds are numbered from 0")
        places = range(t * self.batch_size, (t + 1) * self.batch_size)
        return np.array([self._at(*divmod(place, self.examples)) for place in places], np.int64)

    def _at(self, epoch: int, place: int) -> int:
        return int(_order(self.seed, self.client, self.examples, epoch)[place])


@lru_cache(maxsize=64)
def _order(seed: int, client: int, examples: int, epoch: int) -> NDArray[np.int64]:
    return random_permutation(examples, "epoch", seed, client, epoch)
