"""How good a model is on examples that nobody trains on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opfl_chain.models.registry import model_named
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.datasets import load_dataset
from opfl_chain.training.evaluate import evaluate

EXAMPLES = 2_000
"""Of the test split: enough to see a model learn, and quick beside everything else."""


class Scorer:
    def __init__(self, policy: Policy, dataset: str, data_dir: Path | None) -> None:
        test = load_dataset(dataset, data_dir).test
        self._examples = test.take(np.arange(min(EXAMPLES, len(test))))
        self._model = model_named(policy.model.name)
        self._rules = policy.data

    def accuracy(self, parameters: Mapping[str, NDArray[np.float32]]) -> float:
        return float(evaluate(self._model, parameters, self._examples, self._rules).accuracy)
