"""The rules by which a member judges contributions, and the weights of a round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opfl_chain.mpc.audit.judge import Rules
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.protocol.delivery import Expected
from opfl_chain.roles.job import Job
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.view.records import RoundView


class Judging:
    """Requirements of the policy and the boundary of a job on a judgement."""

    def __init__(self, job: Job, models: Models) -> None:
        self._replays = Replays(job.policy)
        self.rules = Rules(job.policy, job.boundary, self._replays)
        self._models = models

    def warm(self) -> None:
        """Compile the replays that most rounds need."""
        self._replays.warm()

    def expected(self, seat: int) -> Expected:
        """The form of what the member in a seat gets."""
        return self.rules.expected(seat)

    def weights(self, round_: RoundView) -> dict[str, NDArray[np.float32]]:
        weights: dict[str, NDArray[np.float32]] = self._models.layout.unflatten(
            self._models.required(round_.model_hash)
        )
        return weights
