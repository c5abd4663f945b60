"""A recorded run as the tables of attacks use it: references to judge by, and its verifiers.

The run is trained again, to recover what attackers know of each step and records do not keep.
Training is deterministic to the byte, so it matches the recorded replays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from opfl_chain.lab.boundary.records import RuleRecords, RunName, quiet
from opfl_chain.lab.calibration.run import Progress
from opfl_chain.lab.calibration.steps import TrainedStep, trained_steps
from opfl_chain.lab.errors import RecordsInconsistent, TooFewSteps
from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.data.examples import Dataset, features_of
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.model import Model
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Replay
from opfl_chain.rules.registry import BUILTIN_RULES, DEFAULT_RULE
from opfl_chain.rules.rule import AnyRule
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.registry import baselines
from opfl_chain.verifiers.verifier import Reference, Vector, Verifier

PUBLIC_EXAMPLES = 64
"""Number of test examples, from the first, that EIFFeL's server is assumed to have."""


class LabRun:
    """Replayed steps: the first ones to calibrate on, the others to judge.

    Steps with nothing to learn are left out: there is no gradient to attack. Steps that were not
    replayed by a rule for comparison are not judged by it.
    """

    def __init__(
        self,
        root: Path,
        run: RunName,
        calibration_steps: int,
        progress: Progress = quiet,
        data_dir: Path | None = None,
        rules: Sequence[AnyRule] = BUILTIN_RULES,
    ) -> None:
        self.run = run
        self.progress = progress
        self.rules = tuple(rules)
        self._data_dir = data_dir
        self._records = {rule: RuleRecords.open(root, run, rule, progress) for rule in rules}
        self._replayed = {rule: set(each.steps) for rule, each in self._records.items()}
        main = self._records.get(DEFAULT_RULE) or self._records[self.rules[0]]
        self._store = main.store
        steps = [t for t in main.steps if self._lift(t) <= self.policy.largest_lift]
        if len(steps) <= calibration_steps:
            raise TooFewSteps(main.store.folder, main.rule.name, len(steps), calibration_steps)
        self.calibration, self.held_out = steps[:calibration_steps], steps[calibration_steps:]

    @property
    def model(self) -> Model:
        return self.run.model

    @property
    def policy(self) -> Policy:
        """The clients' policy: the default one, since the others give the same gradients."""
        return self.run.policy()

    def _lift(self, t: int) -> int:
        """Return the powers of two by which a label leads, beyond the largest lift too."""
        step = self._store.load_step(t)
        return lift_of(step.logits.astype(np.float64), step.labels, self.policy.largest_lift)

    @cached_property
    def dataset(self) -> Dataset:
        return load_dataset(self.run.dataset, self._data_dir)

    def trained(self, length: int) -> Iterator[TrainedStep]:
        """Train the run again from its beginning."""
        for step in trained_steps(self.policy, self.dataset.train, length):
            yield step
            self.progress(f"training {self.run} again", step.t + 1, length)

    def reference(self, t: int) -> Reference:
        step = self._store.load_step(t)
        replays = {
            rule.name: Replay.of(records.policy, records.store.load_replay(rule.name, t))
            for rule, records in self._records.items()
            if t in self._replayed[rule]
        }
        return Reference(step.gradient, self.public_gradient(step.weights), replays)

    def public_gradient(self, weights: Vector) -> Vector:
        images = self.dataset.test.take(slice(PUBLIC_EXAMPLES))
        examples = features_of(images.images, self.policy.data)
        parameters = self.model.layout.unflatten(weights)
        return self._public_step.run(parameters, examples, images.labels).gradient

    @cached_property
    def _public_step(self) -> LocalStep:
        return LocalStep(self.model, fraction_bits=self.policy.fraction_bits)

    @cached_property
    def local_step(self) -> LocalStep:
        return LocalStep.of_policy(self.policy)

    def other_run(self, t: int) -> RecordsInconsistent:
        """Return the error for a record that training does not reproduce."""
        return self.inconsistent(f"training does not reproduce the gradient of step {t}")

    def inconsistent(self, reason: str) -> RecordsInconsistent:
        """Return the error for records that do not fit."""
        return RecordsInconsistent(self._store.folder, reason)

    @cached_property
    def verifiers(self) -> list[Verifier]:
        """The paper's baselines, and OPFL by each rule, those for comparison last."""
        honest = [self.reference(t) for t in self.calibration]
        return [*baselines(honest), *self.opfl_verifiers]

    @cached_property
    def opfl_verifiers(self) -> list[Verifier]:
        """OPFL by each rule, those for comparison last."""
        rules = sorted(self._records, key=lambda rule: rule.for_comparison)
        return [self.opfl(rule) for rule in rules]

    def opfl(self, rule: AnyRule, grid: Sequence[int] | None = None) -> Opfl:
        """Calibrate OPFL on the policy's grid of quantiles, or on another one."""
        records = self._records[rule]
        if grid is None:
            return Opfl(records.policy, records.boundary(self.calibration))
        policy = records.policy.model_copy(update={"quantile_grid": tuple(grid)})
        observations = (replace(records.observation(t), policy=policy) for t in self.calibration)
        return Opfl(policy, rule.calibrate(policy, list(observations), rule.alpha))

    @property
    def descriptions(self) -> Mapping[str, object]:
        """Report fields that describe the run."""
        return {
            "run": str(self.run),
            "policy_hash": "0x" + self.policy.hash.hex(),
            "calibration_steps": len(self.calibration),
            "held_out_steps": len(self.held_out),
        }
