"""The inputs of one client, round by round, in the two forms that a round needs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring import Words
from opfl_chain.training.examples import Examples
from opfl_chain.training.features import features_of
from opfl_chain.training.schedule import Schedule


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
        """The examples and labels of round t, as the local step takes them."""
        chosen = self.examples.take(self.schedule.indices(t))
        return features_of(chosen.images, self.policy.data), chosen.labels

    def input_words(self, t: int) -> Words:
        """The same as ring words: what the client commits to, and shares when it is audited."""
        return self.policy.input_format.encode(*self.batch(t))
