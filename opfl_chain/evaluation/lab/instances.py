"""Steps that adaptive attacks are tried on: those whose honest update predicts rightly."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from opfl_chain.attacks.pgd import Victims
from opfl_chain.evaluation.errors import TooFewInstances
from opfl_chain.evaluation.evaluated import spread
from opfl_chain.evaluation.lab.lab_run import LabRun, can_judge
from opfl_chain.evaluation.lab.trajectory import TrainedStep
from opfl_chain.protocol.policy import Sgd
from opfl_chain.verifiers.verifier import Reference, Verifier

BEGINNING, WHOLE_RUN = "beginning", "whole run"
"""The first steps after calibration, or steps of all stages. The paper does not say."""


@dataclass(frozen=True, eq=False)
class Instances:
    rows: Sequence[int]
    """Numbers of the instances among all that were chosen."""
    steps: Sequence[int]
    victims: Victims
    references: Sequence[Reference]

    @property
    def digest(self) -> str:
        """Of the choice of steps, so that results of two choices are never mixed."""
        return hashlib.sha256(repr(list(self.steps)).encode()).hexdigest()[:12]

    def judged_by(self, verifier: Verifier) -> Instances:
        """Those that a verifier has a reference of: replays by the paper's rule may be missing."""
        return self._take(
            [p for p, each in enumerate(self.references) if can_judge(verifier, each)]
        )

    def at_rate(self, factor: float) -> Instances:
        """With so many times the learning rate: those whose honest update still predicts rightly.

        What momentum adds to the update stays as it was.
        """
        faster = replace(self, victims=replace(self.victims, rate=factor * self.victims.rate))
        flipped = faster.victims.flipped(faster.victims.gradients)
        return faster._take([place for place, wrong in enumerate(flipped.tolist()) if not wrong])

    def _take(self, places: Sequence[int]) -> Instances:
        return Instances(
            [self.rows[place] for place in places],
            [self.steps[place] for place in places],
            self.victims.take(places),
            [self.references[place] for place in places],
        )


def instances_of(lab: LabRun, stages: Sequence[str], count: int) -> dict[str, Instances]:
    """So many instances for each choice of stages, from one more training run."""
    rules = lab.policy.optimizer
    assert isinstance(rules, Sgd)  # the update is linear in the gradient
    candidates = set(lab.held_out)
    right: dict[int, TrainedStep] = {}
    for step in lab.trained(max(candidates) + 1):
        if step.t in candidates and _predicts_rightly(lab, step, rules):
            right[step.t] = step
        if len(right) == count and list(stages) == [BEGINNING]:
            break
    if not right:
        raise TooFewInstances(str(lab.run))
    found = {}
    for stage in stages:
        steps = list(right)
        chosen = steps[:count] if stage == BEGINNING else spread(steps, count)
        victims = _victims(lab, [right[t] for t in chosen], rules)
        found[stage] = Instances(
            range(len(chosen)), chosen, victims, [lab.reference(t) for t in chosen]
        )
    return found


def _predicts_rightly(lab: LabRun, step: TrainedStep, rules: Sgd) -> bool:
    victim = _victims(lab, [step], rules)
    return not bool(victim.flipped(victim.gradients)[0])


def _victims(lab: LabRun, steps: Sequence[TrainedStep], rules: Sgd) -> Victims:
    rate, momentum = np.float32(rules.learning_rate), np.float32(rules.momentum)
    resting = [step.weights - rate * (momentum * step.state.averages[0]) for step in steps]
    return Victims(
        lab.model,
        torch.from_numpy(np.stack(resting)),
        float(rate),
        torch.from_numpy(np.stack([step.result.gradient for step in steps])),
        torch.from_numpy(np.concatenate([step.examples for step in steps])),
        torch.from_numpy(np.concatenate([step.labels for step in steps])),
    )
