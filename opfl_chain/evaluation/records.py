"""One training run as it was recorded, and its replays by one rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from opfl_chain.calibration.boundaries import (
    GUIDED_ALPHA,
    PAPER_ALPHA,
    Observation,
    calibrated_guided_boundary,
    calibrated_paper_boundary,
)
from opfl_chain.calibration.run import Progress
from opfl_chain.calibration.steps import HonestStep
from opfl_chain.calibration.store import StepStore
from opfl_chain.evaluation.errors import NoSuchRun, RecordsInconsistent, RecordsMissing
from opfl_chain.evaluation.policy_check import check_claim, check_policy
from opfl_chain.evaluation.profiles import Profile, profile_of
from opfl_chain.evaluation.widest import widest
from opfl_chain.models.model import Model
from opfl_chain.models.registry import MODELS
from opfl_chain.mpc.default_policy import default_policy
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.rules import Boundary
from opfl_chain.training.datasets import DATASETS
from opfl_chain.training.local_step import LocalStep

PAPER, GUIDED = "paper", "guided"
RULES = (PAPER, GUIDED)
DEFAULT_ALPHA = {PAPER: PAPER_ALPHA, GUIDED: GUIDED_ALPHA}


def quiet(what: str, done: int, total: int) -> None:
    del what, done, total


@dataclass(frozen=True)
class RunName:
    """A model and the data set that it was trained on: the name of a folder."""

    model: Model
    dataset: str

    @classmethod
    def parse(cls, name: str) -> RunName:
        for model in MODELS.values():
            if name.removeprefix(f"{model.name}-") in DATASETS:
                return cls(model, name.removeprefix(f"{model.name}-"))
        raise NoSuchRun(name, list(MODELS), DATASETS)

    def __str__(self) -> str:
        return f"{self.model.name}-{self.dataset}"


def policy_of(rule: str, model: Model) -> Policy:
    return default_policy(model, guided=rule == GUIDED)


@dataclass(eq=False)
class RuleRecords:
    """The replays of a run by one rule, in the order of training."""

    run: RunName
    rule: str
    store: StepStore
    steps: Sequence[int]
    progress: Progress = quiet
    _alone: dict[tuple[int, float], Boundary] = field(default_factory=dict)

    @classmethod
    def open(cls, root: Path, run: RunName, rule: str, progress: Progress = quiet) -> RuleRecords:
        """What is there now; more may be recorded later."""
        store = StepStore(root / str(run))
        kept, replayed = store.steps(), store.replayed(rule)
        if not kept:
            raise RecordsMissing(store.folder, "recorded steps")
        if not replayed:
            raise RecordsMissing(store.folder, f"replays by rule {rule}")
        if strays := sorted(set(replayed) - set(kept)):
            raise RecordsInconsistent(store.folder, f"step {strays[0]} was replayed, but not kept")
        records = cls(run, rule, store, replayed, progress)
        check_claim(store.folder, policy_of(GUIDED, run.model))
        check_policy(records.policy, run.model, store, rule, replayed[0])
        return records

    @cached_property
    def policy(self) -> Policy:
        return policy_of(self.rule, self.run.model)

    def observation(self, t: int) -> Observation:
        """The replay of a step, beside what the honest client commits to."""
        return Observation.of(
            self.policy, self.step(t).gradient, self.store.load_replay(self.rule, t)
        )

    def step(self, t: int) -> HonestStep:
        """As a client of this rule takes it: for the paper's, no gradient is too small."""
        step = self.store.load_step(t)
        if self.rule == GUIDED or step.gradient.any():
            return step
        weights = self.run.model.layout.unflatten(step.weights)
        result = self._local_step.run(weights, step.examples, step.labels)
        return replace(step, gradient=result.gradient)

    @cached_property
    def _local_step(self) -> LocalStep:
        return LocalStep.of_policy(self.policy)

    @cached_property
    def profiles(self) -> dict[int, Profile]:
        """Of every step."""
        found = {}
        for done, t in enumerate(self.steps, 1):
            found[t] = profile_of(self.observation(t))
            self.progress(f"reading {self.run}, {self.rule}", done, len(self.steps))
        return found

    def boundary(self, steps: Iterable[int], alpha: float | None = None) -> Boundary:
        """Calibrated on these steps, by the functions of `opfl_chain.calibration`."""
        factor = DEFAULT_ALPHA[self.rule] if alpha is None else alpha
        return widest([self._boundary_of_one(t, factor) for t in steps])

    def _boundary_of_one(self, t: int, alpha: float) -> Boundary:
        if (t, alpha) not in self._alone:
            calibrated = (
                calibrated_guided_boundary if self.rule == GUIDED else calibrated_paper_boundary
            )
            self._alone[t, alpha] = calibrated(self.policy, [self.observation(t)], alpha)
        return self._alone[t, alpha]
