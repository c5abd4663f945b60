"""Accuracy of a model on examples that nobody trains on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.local_step import evaluate
from opfl_chain.learning.registry import model_of
from opfl_chain.protocol.policy import Policy

EXAMPLES = 2_000
"""Examples of the test split: enough to see a model learn, and quick to evaluate."""


class Scorer:
    def __init__(self, policy: Policy, dataset: str, data_dir: Path | None) -> None:
        test = load_dataset(dataset, data_dir).test
        self._examples = test.take(np.arange(min(EXAMPLES, len(test))))
        self._model = model_of(policy)
        self._rules = policy.data

    def accuracy(self, parameters: Mapping[str, NDArray[np.float32]]) -> float:
        return float(evaluate(self._model, parameters, self._examples, self._rules).accuracy)
