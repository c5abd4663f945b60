"""A calibration run: its plan, its folder of records, and the policy and rule it is for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opfl_chain.lab import errors
from opfl_chain.lab.calibration.implied import ImpliedReplayer, StepReplayer
from opfl_chain.lab.calibration.replayer import WIDTH, Replayer, StepReplays
from opfl_chain.lab.calibration.steps import StepStore, honest_run
from opfl_chain.learning.data.examples import Dataset
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.registry import model_named, model_of
from opfl_chain.mpc.local import LocalCommittee
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.mpc.session.errors import SessionError
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Observation
from opfl_chain.rules.registry import (
    DEFAULT_RULE,
    require_all_named,
    require_plugins,
    rule_for,
    rule_named,
    rule_of_kind,
)
from opfl_chain.rules.rule import AnyRule
from opfl_chain.system.files import write_atomically

FILE, RECORDS = "run.json", "records"
Progress = Callable[[str, int, int], None]
"""Progress callback: the activity, the steps done, and the steps in total."""
MOST_FAILURES = 3
"""Sessions in a row that may fail without replaying a step."""
SESSION_SECONDS, SECONDS_PER_STEP = 600.0, 60.0
"""Only a hanging session reaches this limit: lost and silent members are noticed in seconds."""


def claim_folder(folder: Path, policy: Policy, dataset: Dataset) -> None:
    """Mark a new folder as belonging to this run, or check that an existing one does."""
    ours: dict[str, Any] = {
        "policy_hash": "0x" + policy.hash.hex(),
        "dataset": dataset.name,
        "examples": len(dataset.train),
        "seed": policy.seeds.data,
    }
    path = folder / FILE
    if not path.exists() and not (folder / RECORDS).exists():
        write_atomically(path, json.dumps(ours, indent=2) + "\n")
        return
    theirs = _read(path)
    for field, value in ours.items():
        if theirs.get(field) != value:
            raise errors.RecordsOfAnotherRun(
                folder, field.replace("_", " "), theirs.get(field), value
            )


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise errors.RecordsOfUnknownRun(path, str(error)) from error
    if not isinstance(fields, dict):
        raise errors.RecordsOfUnknownRun(path, "it is not a JSON object")
    return fields


@dataclass(frozen=True)
class CalibrationPlan:
    """Step numbers, in order. No step is both calibrated on and held out."""

    calibration: tuple[int, ...]
    held_out: tuple[int, ...]

    @classmethod
    def of(
        cls, steps: int, held_out: int = 0, training_steps: int | None = None, spread: bool = False
    ) -> CalibrationPlan:
        """Choose the first steps of a run, or steps spread over it, and hold out some others.

        Without `training_steps` the run is as short as possible.
        """
        length = steps + held_out if training_steps is None else training_steps
        if steps < 1:
            raise errors.PlanInvalid(f"--steps is {steps}, a boundary needs at least 1 honest step")
        if held_out < 0:
            raise errors.PlanInvalid(f"--held-out is {held_out}, it cannot be negative")
        if length < steps + held_out:
            raise errors.PlanInvalid(
                f"--training-steps is {length:,}, which is less than the {steps:,} steps to"
                f" calibrate on and the {held_out:,} held out"
            )
        chosen = evenly(range(length), steps) if spread else list(range(steps))
        taken = set(chosen)
        others = [t for t in range(length) if t not in taken]
        return cls(tuple(chosen), tuple(evenly(others, held_out)))

    @property
    def kept(self) -> list[int]:
        """All steps to replay, those to calibrate on first."""
        return [*self.calibration, *self.held_out]


def evenly(candidates: Sequence[int], count: int) -> list[int]:
    """Return `count` evenly spaced candidates, including the first and the last."""
    gaps = max(count - 1, 1)
    return [candidates[place * (len(candidates) - 1) // gaps] for place in range(count)]


@dataclass(frozen=True)
class CalibrationRun:
    """The records of one policy and data set; makes only those that are missing."""

    policy: Policy
    rule: AnyRule
    dataset: Dataset
    folder: Path

    def __post_init__(self) -> None:
        require_plugins(self.policy)
        require_all_named(self.policy, self.rule.name)
        claim_folder(self.folder, self.policy, self.dataset)

    @property
    def store(self) -> StepStore:
        return StepStore(self.folder / RECORDS)

    def recorded(self, plan: CalibrationPlan) -> int:
        """Count the replays already recorded. Raises if one of them is damaged."""
        found = set(plan.kept) & set(self.store.steps()) & set(self.store.replayed(self.rule.name))
        for t in found:
            self._observation(t)
        return len(found)

    def train(self, plan: CalibrationPlan, progress: Progress) -> None:
        """Record missing steps; training restarts from the beginning for them."""
        missing = set(plan.kept) - set(self.store.steps())
        length = max(missing, default=-1) + 1
        for t, _, step in honest_run(self.policy, self.dataset.train, length, missing):
            if step:
                self.store.save_step(step)
            progress("training", t + 1, length)

    def replay(
        self, plan: CalibrationPlan, progress: Progress, notice: Callable[[str], None]
    ) -> None:
        """Record missing replays, with a new session after each failure."""
        if self.policy.proof is not None:
            missing = self._missing(plan)
            self._record(ImpliedReplayer(self.policy), missing, plan, progress)
            return
        replays = StepReplays(self.policy, WIDTH)
        failures = 0
        while missing := self._missing(plan):
            try:
                self._session(replays, missing, plan, progress)
            except SessionError as error:
                no_progress = len(self._missing(plan)) == len(missing)
                failures = failures + 1 if no_progress else 0
                if failures > MOST_FAILURES:
                    raise errors.CommitteeKeepsFailing(failures, error) from error
                notice(f"{str(error).splitlines()[0]} Continuing in a new session.")

    def observations(self, steps: Sequence[int]) -> Iterator[Observation]:
        """Pair recorded steps with their replays, one at a time: they are large."""
        return map(self._observation, steps)

    def _missing(self, plan: CalibrationPlan) -> list[int]:
        done = set(self.store.replayed(self.rule.name))
        return [t for t in plan.kept if t not in done]

    def _session(
        self,
        replays: StepReplays,
        missing: Sequence[int],
        plan: CalibrationPlan,
        progress: Progress,
    ) -> None:
        seconds = SESSION_SECONDS + SECONDS_PER_STEP * len(missing)
        with LocalCommittee() as local, local.session(seconds=seconds) as committee:
            self._record(Replayer(committee, self.policy, replays), missing, plan, progress)

    def _record(
        self,
        replayer: StepReplayer,
        missing: Sequence[int],
        plan: CalibrationPlan,
        progress: Progress,
    ) -> None:
        total = len(plan.kept)
        for done in replay_and_record(replayer, self.store, self.rule.name, missing):
            progress("replaying", total - len(missing) + done, total)

    def _observation(self, t: int) -> Observation:
        gradient = self.store.load_step(t).gradient
        return Observation.of(self.policy, gradient, self.store.load_replay(self.rule.name, t))


def replay_and_record(
    replayer: StepReplayer, store: StepStore, rule: str, steps: Sequence[int]
) -> Iterator[int]:
    """Replay recorded steps, and yield the number done after each."""
    replayed = replayer.replay_all(store.load_step(t) for t in steps)
    for done, (t, each) in enumerate(zip(steps, replayed, strict=True), 1):
        store.save_replay(rule, t, each)
        yield done


def rule_chosen(name: str | None, kind: str | None) -> AnyRule | None:
    """Return the rule of this name or kind of audits; raise if both are given and differ."""
    named = rule_named(name) if name else None
    if kind is None:
        return named
    of_kind = rule_of_kind(kind)
    if named is not None and named.replay != kind:
        raise errors.PlanInvalid(
            f"rule {named.name} is for {named.replay} audits, not for {kind} ones (--kind)"
        )
    return named or of_kind


def policy_for(
    model: str | None, rule: AnyRule | None, file: Path | None, batch_size: int | None = None
) -> tuple[Policy, AnyRule]:
    """Return policy and rule; raise if the file is for another model or rule than requested."""
    if file is None:
        chosen = rule or DEFAULT_RULE
        named = model_named(model or LENET_61706.name)
        return default_policy(named, rule=chosen, batch_size=batch_size or 1), chosen
    policy = Policy.from_json(file.read_bytes())
    model_of(policy)  # raises if it is unknown
    if model not in (None, policy.model.name):
        raise errors.PlanInvalid(_not_for(file, "model", policy.model.name, model))
    if batch_size not in (None, policy.data.batch_size):
        found = str(policy.data.batch_size)
        raise errors.PlanInvalid(_not_for(file, "batch", f"size {found}", f"size {batch_size}"))
    if rule is not None and rule.replay != policy.replay.kind:
        raise errors.PlanInvalid(_not_for(file, "rule", rule_for(policy).name, rule.name))
    return policy, rule or rule_for(policy)


def _not_for(file: Path, name: str, found: str, wanted: str | None) -> str:
    return f"{file} is a policy for {name} {found}, not for {wanted} (--{name})"
