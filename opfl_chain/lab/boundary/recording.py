"""Makes the records of the evaluation: training runs, and replays of some of their steps.

Existing records are kept, so an interrupted recording resumes where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from opfl_chain.lab.boundary.records import RunName, claim_form
from opfl_chain.lab.calibration.implied import ImpliedReplayer, StepReplayer
from opfl_chain.lab.calibration.replayer import WIDTH, Replayer, StepReplays
from opfl_chain.lab.calibration.run import Progress, claim_folder, replay_and_record
from opfl_chain.lab.calibration.steps import HonestStep, StepStore, honest_run, spread_steps
from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.mpc.local import Committee, LocalCommittee, MemoryCommittee
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Replayed
from opfl_chain.rules.rule import AnyRule

SESSION_SECONDS = 24 * 3600.0
"""Only a hanging session reaches this limit: lost and silent members are noticed in seconds."""

Committees = Callable[[], AbstractContextManager[Committee]]


@dataclass(frozen=True)
class RecordingPlan:
    """The steps of a run to keep, and the steps to replay by each rule."""

    training_steps: int
    first: int
    """Number of steps kept from the beginning, to calibrate on."""
    spread: int
    """Number of steps kept from the rest, evenly spaced."""
    compared_first: int
    compared_every: int
    """Every how many spread steps one is replayed by a rule for comparison."""

    @property
    def kept(self) -> list[int]:
        return spread_steps(self.first, self.spread, self.training_steps)

    def replayed(self, rule: AnyRule) -> list[int]:
        kept = self.kept
        if rule.for_comparison:
            return kept[: self.compared_first] + kept[self.first :: self.compared_every]
        return kept


PLANS = {
    "lenet-61706-mnist": RecordingPlan(30_000, 500, 600, 500, 4),
    "lenet-61706-fashion-mnist": RecordingPlan(20_000, 200, 500, 200, 4),
    "lenet-431080-mnist": RecordingPlan(12_000, 100, 300, 100, 6),
    "lenet-431080-fashion-mnist": RecordingPlan(10_000, 100, 300, 100, 6),
}
"""Plans of the published evaluation."""

PROVED_PLAN = RecordingPlan(6_000, 500, 200, 500, 1)
"""The plan of the published evaluation of proved steps alone, for every run: nothing is replayed
in MPC, so that there is time for 500 calibration steps."""

QUICK_PLAN = RecordingPlan(400, 20, 20, 20, 2)
"""Takes minutes instead of hours; also the plan of all other runs."""


def plan_of(run: RunName, rules: Sequence[AnyRule], quick: bool) -> RecordingPlan:
    """Return the plan of a run, which depends on whether any rule needs replays in MPC."""
    if not quick and all(run.policy(rule).proof is not None for rule in rules):
        return PROVED_PLAN
    return QUICK_PLAN if quick else PLANS.get(f"{run.model.name}-{run.dataset}", QUICK_PLAN)


def record(
    root: Path,
    run: RunName,
    plan: RecordingPlan,
    rules: Sequence[AnyRule],
    committees: Committees,
    progress: Progress,
    data_dir: Path | None = None,
) -> None:
    """Train and replay the steps that are not recorded yet."""
    store = StepStore(root / str(run))
    missing = set(plan.kept) - set(store.steps())
    if missing:
        dataset, policy = load_dataset(run.dataset, data_dir), run.policy()
        claim_folder(store.folder, policy, dataset)
        length = max(missing) + 1
        for t, _, step in honest_run(policy, dataset.train, length, missing):
            if step:
                store.save_step(step)
            progress(f"training {run}", t + 1, length)
    for rule in rules:
        done = set(store.replayed(rule.name))
        steps = [t for t in plan.replayed(rule) if t not in done]
        claim_form(store, rule, run.policy(rule))
        if not steps:
            continue
        with replaying(run.policy(rule), committees) as replayer:
            for count in replay_and_record(replayer, store, rule.name, steps):
                progress(f"replaying {run}, {rule.name}", count, len(steps))


@contextmanager
def replaying(policy: Policy, committees: Committees) -> Iterator[StepReplayer]:
    """Yield a replayer of steps; a committee is started unless clients prove their steps."""
    if policy.proof is not None:
        yield ImpliedReplayer(policy)
        return
    with committees() as committee:
        yield Replayer(committee, policy, StepReplays(policy, WIDTH))


@contextmanager
def three_processes() -> Iterator[Committee]:
    with LocalCommittee() as local, local.session(seconds=SESSION_SECONDS) as committee:
        yield committee


def three_threads() -> AbstractContextManager[Committee]:
    return MemoryCommittee()


def replayed_by(
    committees: Committees,
) -> Callable[[Policy, Sequence[HonestStep]], Sequence[Replayed]]:
    """Return a function that replays steps with a committee started on demand."""

    def replay_all(policy: Policy, steps: Sequence[HonestStep]) -> Sequence[Replayed]:
        if not steps:
            return []
        with replaying(policy, committees) as replayer:
            return list(replayer.replay_all(steps))

    return replay_all
