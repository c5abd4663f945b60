"""Honest proofs: which steps would fail, and how much of every bound they use.

Clients that prove evaluate their statement in the clear before they send anything. So thousands of
steps are judged without a committee, with fresh coins for each; some are proved and answered too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

import numpy as np

from opfl_chain.lab.boundary.evaluated import spread
from opfl_chain.lab.boundary.records import RunName, quiet
from opfl_chain.lab.calibration.implied import implied, lift_in
from opfl_chain.lab.calibration.proving import BOUNDS, StepProver, form_of, lengths, tolerance_of
from opfl_chain.lab.calibration.run import Progress
from opfl_chain.lab.calibration.steps import ANY_TOLERANCE, TrainedStep, spread_steps, trained_steps
from opfl_chain.lab.statistics import upper_bound
from opfl_chain.learning.data.examples import Dataset
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.closing import TOLERANCE_BITS, Tolerance
from opfl_chain.protocol.proof.prover import Usage
from opfl_chain.protocol.proof.wires import StatementError
from opfl_chain.render.text import markdown_table
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Observation
from opfl_chain.rules.rule import AnyRule

Row = dict[str, Any]


@dataclass(frozen=True)
class Variation:
    """A way of training that differs from the run on which the boundary is calibrated."""

    optimizer: Mapping[str, Any] | None = None
    seed: int = 0

    def policy(self, run: RunName, rule: AnyRule) -> Policy:
        """Return the policy of a run trained in this way."""
        given = dict(self.optimizer) if self.optimizer else None
        return default_policy(
            run.model, rule=rule, optimizer=given, batch_size=run.batch_size, seed=self.seed
        )


VARIATIONS: Final[Mapping[str, Variation]] = {
    "default": Variation(),
    "seed 1": Variation(seed=1),
    "seed 2": Variation(seed=2),
    "sgd 0.01": Variation({"name": "sgd", "learning_rate": 0.01, "momentum": 0.9}),
    "sgd 0.05": Variation({"name": "sgd", "learning_rate": 0.05, "momentum": 0.9}),
    "adamw 0.001": Variation({"name": "adamw", "learning_rate": 0.001}),
    "adamw 0.01": Variation({"name": "adamw", "learning_rate": 0.01}),
}


@dataclass(frozen=True)
class HeadroomPlan:
    """Numbers of steps of a run."""

    training_steps: int
    judged: int
    """Steps evaluated in the clear, spaced evenly over the run."""
    proofs: int
    """The number of these that are proved and answered, too."""
    calibration_steps: int = 100

    @classmethod
    def quick(cls) -> HeadroomPlan:
        """Return a plan that takes seconds."""
        return cls(40, 20, 2, 20)

    @property
    def kept(self) -> list[int]:
        """The first steps, to calibrate on, and those to judge."""
        return spread_steps(self.calibration_steps, self.judged, self.training_steps)


@dataclass
class Judged:
    """The steps of a run that were judged so far."""

    tolerance: Tolerance
    steps: int = 0
    last: int | None = None
    causes: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)
    used: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in BOUNDS})
    largest_lift: int = 0
    proofs: int = 0
    accepted: int = 0

    def add(self, t: int, causes: Sequence[str], usage: Usage | None, lift: int) -> None:
        """Count a step."""
        self.steps += 1
        self.last = t
        self.causes.update(causes)
        if causes:
            self.failed.append(t)
        if usage is not None:
            for name, used in lengths(usage).items():
                self.used[name].append(used)
        self.largest_lift = max(self.largest_lift, lift)

    @property
    def fields(self) -> Row:
        used = {
            f"use_{name}_{what}": float(of(found)) if found else None
            for name, found in self.used.items()
            for what, of in (("max", np.max), ("median", np.median))
        }
        return {
            "relative_tolerance": self.tolerance.relative / 2.0**TOLERANCE_BITS,
            "honest_steps": self.steps,
            "last_step": self.last,
            "would_fail": len(self.failed),
            "failed_by_cause": dict(sorted(self.causes.items())),
            "failed_steps": self.failed,
            "upper95": upper_bound(len(self.failed), self.steps) if self.steps else None,
            **used,
            "largest_lift": self.largest_lift,
            "proofs_made": self.proofs,
            "proofs_accepted": self.accepted,
        }


def calibrated_on(
    policy: Policy, rule: AnyRule, dataset: Dataset, steps: int, progress: Progress = quiet
) -> Boundary:
    """Calibrate on the first steps of a run."""
    prover = StepProver(policy, ANY_TOLERANCE)
    seen = []
    for step in trained_steps(policy, dataset.train, steps):
        proved = prover.run(step)
        seen.append(Observation.of(policy, proved.result.gradient, implied(policy, proved)))
        progress("calibrating", step.t + 1, steps)
    found: Boundary = rule.calibrate(policy, seen, rule.alpha)
    return found


def judge_run(
    policy: Policy,
    boundary: Boundary,
    dataset: Dataset,
    plan: HeadroomPlan,
    progress: Progress = quiet,
) -> Row:
    """Train, and judge steps of the run that the boundary was not calibrated on.

    An interrupt ends the run early: what was judged until then counts.
    """
    tolerance = tolerance_of(boundary)
    found, prover = Judged(tolerance), StepProver(policy, tolerance)
    judged = plan.kept[plan.calibration_steps :]
    proved = set(spread(judged, plan.proofs))
    wanted = set(judged)
    try:
        for step in trained_steps(policy, dataset.train, max(judged) + 1):
            if step.t not in wanted:
                continue
            _judge(found, prover, step, prove=step.t in proved)
            progress("judging", found.steps, len(judged))
    except KeyboardInterrupt:
        if not found.steps:
            raise
    return found.fields


def _judge(found: Judged, prover: StepProver, step: TrainedStep, *, prove: bool) -> None:
    try:
        proved = prover.run(step)
    except StatementError as error:
        found.add(step.t, [f"no statement: {error}"], None, 0)
        return
    usage = prover.rehearse(step, proved)
    over = [name for name, used in usage.bounds.items() if used > 1]
    found.add(step.t, [*usage.broken, *over], usage, lift_in(proved))
    if prove:
        found.proofs += 1
        found.accepted += prover.prove(step, proved)


def headroom_row(
    run: RunName,
    rule: AnyRule,
    name: str,
    boundary: Boundary,
    dataset: Dataset,
    plan: HeadroomPlan,
    progress: Progress = quiet,
) -> Row:
    """Judge a run that was trained in a variation, by a boundary of the default one."""
    policy = VARIATIONS[name].policy(run, rule)
    return {
        "run": str(run),
        "rule": rule.name,
        "model": run.model.name,
        "dataset": dataset.name,
        "batch_size": run.batch_size,
        "variation": name,
        **asdict(plan),
        "statement": form_of(policy),
        **judge_run(policy, boundary, dataset, plan, progress),
    }


def headroom_rows(
    runs: Sequence[RunName],
    rule: AnyRule,
    variations: Sequence[str],
    plan: HeadroomPlan,
    known: Sequence[Row],
    datasets: Callable[[str], Dataset],
    progress: Progress = quiet,
) -> Iterator[Row]:
    """Yield a row for every run and variation; rows that are known already are not made again.

    Those of other proofs than today's are. A row that an interrupt cut short is the last one.
    """
    for run in runs:
        boundary: Boundary | None = None
        for name in variations:
            found = next((row for row in known if _is_of(row, run, rule, name, plan)), None)
            if found is None:
                dataset = datasets(run.dataset)
                if boundary is None:
                    steps = plan.calibration_steps
                    boundary = calibrated_on(run.policy(rule), rule, dataset, steps, progress)
                found = headroom_row(run, rule, name, boundary, dataset, plan, progress)
            yield found
            if _is_short(found):
                return


def _is_of(row: Row, run: RunName, rule: AnyRule, name: str, plan: HeadroomPlan) -> bool:
    wanted = {"run": str(run), "rule": rule.name, "variation": name, **asdict(plan)}
    if any(row.get(field) != value for field, value in wanted.items()) or _is_short(row):
        return False
    return row.get("statement") == form_of(VARIATIONS[name].policy(run, rule))


def others(known: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return known rows, but for those that new ones of the same run and size replace."""
    names = ("run", "rule", "variation", *(each.name for each in fields(HeadroomPlan)))
    made = [[row.get(name) for name in names] for row in rows]
    return [row for row in known if [row.get(name) for name in names] not in made]


def _is_short(row: Row) -> bool:
    return bool(row["honest_steps"] < row["judged"])


def table_of(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    names = ("run", "variation", ">failed", ">95 %", ">tolerance", *(f">{b}" for b in BOUNDS))
    cells = (
        (
            row["run"],
            row["variation"],
            f"{row['would_fail']:,} of {row['honest_steps']:,}",
            f"< {row['upper95']:.2%}",
            f"{row['relative_tolerance']:.1e}",
            *(_percent(row[f"use_{bound}_max"]) for bound in BOUNDS),
            f"{row['proofs_accepted']:,} of {row['proofs_made']:,}",
        )
        for row in rows
    )
    return markdown_table([*names, ">proofs accepted"], cells, tight=True)


def _percent(used: float | None) -> str:
    return "" if used is None else f"{used:.0%}"
