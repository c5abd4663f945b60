"""Benchmark of the lab: adaptive attack instances per minute, batched and one by one."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from opfl_chain.adversaries.pgd import BETAS, PgdSettings, Victims, attack, logits_at
from opfl_chain.lab.calibration.steps import honest_run
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.devices import deterministic
from opfl_chain.learning.model import Model
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.verifiers.norms import RoflL2
from opfl_chain.verifiers.verifier import Reference

FULL_INSTANCES, FULL_VERIFIERS = 200, 7
"""The size of the table of adaptive attacks."""


@dataclass(frozen=True)
class LabBench:
    """Rates. An instance is one step against one verifier at one strength, from all starts."""

    model: str
    batch: int
    instances_per_minute: float
    alone_per_minute: float

    @property
    def report(self) -> dict[str, Any]:
        table = FULL_INSTANCES * FULL_VERIFIERS * len(BETAS)
        return {
            **asdict(self),
            "speedup": self.instances_per_minute / self.alone_per_minute,
            "minutes_for_the_full_table": table / self.instances_per_minute,
        }


def bench_lab(model: Model, batch: int, repeats: int) -> LabBench:
    """Measure attacks on RoFL-L2, whose penalty costs about as much as the others'."""
    policy = default_policy(model)
    run = honest_run(policy, synthetic_dataset().train, batch, range(batch))
    steps = [step for _, _, step in run if step is not None]
    references = [Reference(step.gradient, public=step.gradient) for step in steps]
    gradients, weights = (
        torch.from_numpy(np.stack(each))
        for each in ([s.gradient for s in steps], [s.weights for s in steps])
    )
    rate = policy.optimizer.learning_rate
    examples = torch.from_numpy(np.concatenate([step.examples for step in steps]))
    labels = logits_at(model, weights, examples).argmax(1)
    victims = Victims(model, weights, rate, gradients, examples, labels)
    verifier = RoflL2.calibrated(references)

    def seconds(rows: slice) -> float:
        started = time.perf_counter()
        chosen = range(rows.start, rows.stop)
        attack(victims.take(rows), references[rows], verifier, 1.0, PgdSettings(), rows=chosen)
        return time.perf_counter() - started

    with deterministic():
        seconds(slice(0, 1))  # warm-up
        alone, together = [], []
        for place in range(repeats):
            alone.append(seconds(slice(place % batch, place % batch + 1)))
            together.append(seconds(slice(0, batch)))
    return LabBench(
        model.name,
        batch,
        60 * batch / float(np.median(together)),
        60 / float(np.median(alone)),
    )
