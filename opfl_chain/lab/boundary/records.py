"""Recorded replays of a run by one rule, checked to belong to the policy they are read with.

A folder may name its policy. Steps and replays do not, but their sizes, lifts and scales reveal
another model, batch size or loss scale.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.calibration.proving import form_of
from opfl_chain.lab.calibration.run import FILE, Progress
from opfl_chain.lab.calibration.steps import ANY_TOLERANCE, HonestStep, StepStore
from opfl_chain.lab.errors import NoSuchRun, RecordsInconsistent, RecordsMissing
from opfl_chain.learning.data.datasets import DATASETS
from opfl_chain.learning.local_step import LocalStep, StepResult
from opfl_chain.learning.model import Model
from opfl_chain.learning.proved_client import ProvedStep
from opfl_chain.learning.registry import MODELS, model_named
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Observation, Profile
from opfl_chain.rules.registry import DEFAULT_RULE
from opfl_chain.rules.rule import AnyRule, NothingToCalibrate
from opfl_chain.system.files import write_atomically

_BATCH = "-batch"
_FORM = "statement"


def check_claim(folder: Path, policy: Policy) -> None:
    """Raise if the folder names another policy."""
    path, ours = folder / FILE, "0x" + policy.hash.hex()
    if not path.is_file():
        return
    theirs = json.loads(path.read_text(encoding="utf-8")).get("policy_hash")
    if theirs != ours:
        raise RecordsInconsistent(folder, f"it was recorded with policy {theirs}, expected {ours}")


def check_policy(policy: Policy, model: Model, store: StepStore, rule: str, t: int) -> None:
    """Raise if a step or its replay does not fit the policy."""
    step, replayed = store.load_step(t), store.load_replay(rule, t)
    sizes = {
        "weights": (step.weights.size, model.layout.size),
        "gradient": (step.gradient.size, model.layout.trainable.size),
        "replay": (replayed.gradient.size, model.layout.trainable.size),
        "labels": (len(step.labels), policy.data.batch_size),
    }
    for name, (size, expected) in sizes.items():
        if size != expected:
            raise RecordsInconsistent(
                store.folder, f"{name} of step {t}: size {size:,}, the policy has {expected:,}"
            )
    logits = step.logits.astype(np.float64)
    lift = lift_of(logits, step.labels, policy.largest_lift) if policy.replay.advised else 0
    if policy.proof is None and replayed.lift != lift:
        raise RecordsInconsistent(
            store.folder,
            f"step {t} was replayed with lift {replayed.lift}, the policy gives {lift}",
        )
    seen = Observation.of(policy, step.gradient, replayed)
    sizes_apart = np.linalg.norm(seen.replay.words) / max(float(np.linalg.norm(seen.gradient)), 1.0)
    if seen.gradient.any() and not math.sqrt(0.5) < sizes_apart < math.sqrt(2):
        raise RecordsInconsistent(
            store.folder,
            f"the replay of step {t} by rule {rule} is {sizes_apart:.3g} times as large as the"
            " gradient: it was made with another loss scale",
        )


def form_file(store: StepStore, rule: AnyRule) -> Path:
    """Return the file that names the proofs by which gradients of a rule are implied."""
    return store.folder / rule.name / _FORM


def claim_form(store: StepStore, rule: AnyRule, policy: Policy) -> None:
    """Mark a folder without gradients that proofs imply as one of today's, or check that it is."""
    if policy.proof is not None and not store.replayed(rule.name):
        write_atomically(form_file(store, rule), form_of(policy) + "\n")
    check_form(store, rule, policy)


def check_form(store: StepStore, rule: AnyRule, policy: Policy) -> None:
    """Raise if gradients of a rule are implied by other proofs than today's."""
    if policy.proof is None:
        return
    path = form_file(store, rule)
    theirs = path.read_text(encoding="utf-8").strip() if path.is_file() else "an unknown statement"
    if theirs != (ours := form_of(policy)):
        raise RecordsInconsistent(
            store.folder,
            f"gradients by rule {rule.name} are implied by {theirs}, today's proofs state {ours}:"
            f" delete {path.parent} and record them again with --make",
        )


def quiet(what: str, done: int, total: int) -> None:
    del what, done, total


@dataclass(frozen=True)
class RunName:
    """A model, its data set and the size of batches, which name the folder of a run."""

    model: Model
    dataset: str
    batch_size: int = 1

    @classmethod
    def parse(cls, name: str) -> RunName:
        """Read MODEL-DATASET or MODEL-DATASET-batchN."""
        rest, _, batch = name.partition(_BATCH)
        for model in MODELS:
            dataset = rest.removeprefix(f"{model}-")
            if dataset in DATASETS and (batch.isdecimal() or rest == name):
                return cls(model_named(model), dataset, int(batch or 1))
        raise NoSuchRun(name, list(MODELS), list(DATASETS))

    def __str__(self) -> str:
        batch = f"{_BATCH}{self.batch_size}" if self.batch_size > 1 else ""
        return f"{self.model.name}-{self.dataset}{batch}"

    def policy(self, rule: AnyRule = DEFAULT_RULE) -> Policy:
        """Return the default policy of the run under a rule."""
        return default_policy(self.model, rule=rule, batch_size=self.batch_size)


@dataclass(eq=False)
class RuleRecords:
    """The replays of a run by one rule, in the order of training."""

    run: RunName
    rule: AnyRule
    store: StepStore
    steps: Sequence[int]
    progress: Progress = quiet
    _alone: dict[tuple[int, float], Boundary] = field(default_factory=dict)
    _committed: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    """Gradients that take longer to compute than to keep."""

    @classmethod
    def open(
        cls, root: Path, run: RunName, rule: AnyRule, progress: Progress = quiet
    ) -> RuleRecords:
        """Open the records made so far, and check that they belong together."""
        store = StepStore(root / str(run))
        kept, replayed = store.steps(), store.replayed(rule.name)
        if not kept:
            raise RecordsMissing(store.folder, "recorded steps")
        if not replayed:
            raise RecordsMissing(store.folder, f"replays by rule {rule.name}")
        if strays := sorted(set(replayed) - set(kept)):
            raise RecordsInconsistent(
                store.folder, f"step {strays[0]} is replayed, but not recorded"
            )
        records = cls(run, rule, store, replayed, progress)
        check_claim(store.folder, run.policy())
        check_policy(records.policy, run.model, store, rule.name, replayed[0])
        check_form(store, rule, records.policy)
        return records

    @cached_property
    def policy(self) -> Policy:
        return self.run.policy(self.rule)

    def observation(self, t: int) -> Observation:
        """Return the replay of a step, paired with the honest client's commitment."""
        return Observation.of(
            self.policy, self.step(t).gradient, self.store.load_replay(self.rule.name, t)
        )

    def step(self, t: int) -> HonestStep:
        """Return the step of a client under this rule.

        Recorded clients advise, and commit to zero where there is nothing to learn. A client that
        does not advise commits to its gradient, however small; one that proves it runs the step
        along its proof.
        """
        step = self.store.load_step(t)
        if self.policy.proof is None and (self.policy.replay.advised or step.gradient.any()):
            return step
        if t not in self._committed:
            weights = self.run.model.layout.unflatten(step.weights)
            given = weights, step.examples, step.labels
            self._committed[t] = self._local_step.run(*given, **self.path(t)).gradient
        return replace(step, gradient=self._committed[t])

    def path(self, t: int) -> Mapping[str, Any]:
        """Return what every execution of a step follows: the options of the local step."""
        if self.policy.proof is None:
            return {}
        step, taken = self.store.load_step(t), {}

        def keep(*given: Any, **options: Any) -> StepResult:
            taken.update(options)
            return self._local_step.run(*given)

        weights = self.run.model.layout.unflatten(step.weights)
        self._proved_step.run(weights, step.examples, step.labels, keep)
        return {name: taken[name] for name in ("masks", "errors")}

    @cached_property
    def _local_step(self) -> LocalStep:
        return LocalStep.of_policy(self.policy)

    @cached_property
    def _proved_step(self) -> ProvedStep:
        return ProvedStep(self.policy, ANY_TOLERANCE)

    @cached_property
    def profiles(self) -> dict[int, Profile]:
        """The profile of every step."""
        found = {}
        for done, t in enumerate(self.steps, 1):
            found[t] = self.rule.profile(self.observation(t))
            self.progress(f"reading {self.run}, {self.rule.name}", done, len(self.steps))
        return found

    def boundary(self, steps: Iterable[int], alpha: float | None = None) -> Boundary:
        """Calibrate a boundary on these steps, from those of each step if the rule can."""
        chosen, factor = list(steps), self.rule.alpha if alpha is None else alpha
        if not chosen:
            raise NothingToCalibrate
        if self.rule.merged([self._boundary_of(chosen[0], factor)]) is None:
            observations = [self.observation(t) for t in chosen]
            return cast(Boundary, self.rule.calibrate(self.policy, observations, factor))
        return cast(Boundary, self.rule.merged([self._boundary_of(t, factor) for t in chosen]))

    def _boundary_of(self, t: int, alpha: float) -> Boundary:
        if (t, alpha) not in self._alone:
            alone: Boundary = self.rule.calibrate(self.policy, [self.observation(t)], alpha)
            self._alone[t, alpha] = alone
        return self._alone[t, alpha]
