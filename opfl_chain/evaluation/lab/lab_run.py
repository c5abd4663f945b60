"""One recorded run as the lab uses it: references of its steps, and verifiers calibrated on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from opfl_chain.calibration.boundaries import (
    Observation,
    calibrated_guided_boundary,
    calibrated_paper_boundary,
)
from opfl_chain.calibration.run import Progress
from opfl_chain.evaluation.errors import RecordsInconsistent, TooFewSteps
from opfl_chain.evaluation.lab.trajectory import TrainedStep, trained_steps
from opfl_chain.evaluation.records import GUIDED, PAPER, RULES, RuleRecords, RunName, quiet
from opfl_chain.evaluation.widest import widest
from opfl_chain.models.model import Model
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.datasets import load_dataset
from opfl_chain.training.examples import Dataset
from opfl_chain.training.features import features_of
from opfl_chain.training.local_step import LocalStep
from opfl_chain.verifiers.baselines import baselines
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.verifier import Reference, Replay, Vector, Verifier

PUBLIC_EXAMPLES = 64
"""The first ones of the test split: what EIFFeL's server is taken to have."""


def can_judge(verifier: Verifier, reference: Reference) -> bool:
    """Whether a step was replayed by the rule of a verifier, if it needs that."""
    return not isinstance(verifier, Opfl) or verifier.boundary.rule in reference.replays


class LabRun:
    """Steps that were replayed: the first ones to calibrate on, the others to judge.

    Steps that have nothing to learn are left out: there is no gradient to attack. Some may not be
    replayed by the paper's rule, and are then not judged by it.
    """

    def __init__(
        self,
        root: Path,
        run: RunName,
        calibration_steps: int,
        progress: Progress = quiet,
        data_dir: Path | None = None,
    ) -> None:
        self.run = run
        self.progress = progress
        self._data_dir = data_dir
        self._records = {rule: RuleRecords.open(root, run, rule, progress) for rule in RULES}
        self._replayed = {rule: set(each.steps) for rule, each in self._records.items()}
        guided, most = self._records[GUIDED], self.policy.largest_lift
        lifts = {t: guided.store.load_replay(GUIDED, t).lift for t in guided.steps}
        steps = [t for t, lift in lifts.items() if lift <= most]
        if len(steps) <= calibration_steps:
            raise TooFewSteps(guided.store.folder, GUIDED, len(steps), calibration_steps)
        self.calibration, self.held_out = steps[:calibration_steps], steps[calibration_steps:]

    @property
    def model(self) -> Model:
        return self.run.model

    @property
    def policy(self) -> Policy:
        """By which clients train: the guided one, since the plain one gives the same gradients."""
        return self._records[GUIDED].policy

    @cached_property
    def dataset(self) -> Dataset:
        return load_dataset(self.run.dataset, self._data_dir)

    def trained(self, length: int) -> Iterator[TrainedStep]:
        """The run from its beginning."""
        for step in trained_steps(self.policy, self.dataset.train, length):
            yield step
            self.progress(f"training {self.run} again", step.t + 1, length)

    def reference(self, t: int) -> Reference:
        step = self._records[GUIDED].store.load_step(t)
        replays = {}
        for rule, records in self._records.items():
            if t not in self._replayed[rule]:
                continue
            replayed = records.store.load_replay(rule, t)
            seen = Observation.of(records.policy, step.gradient, replayed)
            replays[rule] = Replay(
                seen.replay, seen.headroom, replayed.wrong_side, replayed.over_ceiling
            )
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
        """The error of records that this machine does not get when it trains."""
        folder = self._records[GUIDED].store.folder
        return RecordsInconsistent(folder, f"training gives another gradient of step {t}")

    @cached_property
    def verifiers(self) -> list[Verifier]:
        """All of the paper's, and OPFL by both rules."""
        honest = [self.reference(t) for t in self.calibration]
        return [*baselines(honest), self.opfl(GUIDED), self.opfl(PAPER)]

    def opfl(self, rule: str, grid: Sequence[int] | None = None) -> Opfl:
        """Calibrated as usual, or on another grid of quantiles."""
        records = self._records[rule]
        if grid is None:
            return Opfl(records.policy, records.boundary(self.calibration))
        policy = records.policy.model_copy(update={"quantile_grid": tuple(grid)})
        calibrate = calibrated_guided_boundary if rule == GUIDED else calibrated_paper_boundary
        alone = (
            calibrate(policy, [replace(records.observation(t), policy=policy)])
            for t in self.calibration
        )
        return Opfl(policy, widest(list(alone)))

    @property
    def descriptions(self) -> Mapping[str, object]:
        """What a report says of the run."""
        return {
            "run": str(self.run),
            "policy_hash": "0x" + self.policy.hash.hex(),
            "calibration_steps": len(self.calibration),
            "held_out_steps": len(self.held_out),
        }
