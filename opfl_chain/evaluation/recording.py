"""Makes the records that are evaluated: whole training runs, and replays of some of their steps.

Whatever is recorded already stays, so an interrupted recording goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from opfl_chain.calibration.identity import claim_folder
from opfl_chain.calibration.replayer import Replayed, Replayer
from opfl_chain.calibration.run import Progress, replay_and_record
from opfl_chain.calibration.side_by_side import WIDTH, StepReplays
from opfl_chain.calibration.steps import HonestStep, honest_run, spread_steps
from opfl_chain.calibration.store import StepStore
from opfl_chain.evaluation.records import GUIDED, PAPER, RunName, policy_of
from opfl_chain.mpc.committee import Committee
from opfl_chain.mpc.local_committee import LocalCommittee
from opfl_chain.mpc.memory_committee import MemoryCommittee
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.datasets import load_dataset

SESSION_SECONDS = 24 * 3600.0
"""Only a session that hangs gets there: lost and silent members are noticed in seconds."""

Committees = Callable[[], AbstractContextManager[Committee]]


@dataclass(frozen=True)
class RecordingPlan:
    """Which steps of a run are kept, and which of them are replayed by which rule."""

    training_steps: int
    first: int
    """So many steps of the beginning, which rules are calibrated on."""
    spread: int
    """So many steps of the rest, at equal distances."""
    paper_first: int
    paper_every: int
    """Plain replays serve to compare with: one of so many spread steps."""

    @property
    def kept(self) -> list[int]:
        return spread_steps(self.first, self.spread, self.training_steps)

    def replayed(self, rule: str) -> list[int]:
        kept = self.kept
        if rule == PAPER:
            return kept[: self.paper_first] + kept[self.first :: self.paper_every]
        return kept


PLANS = {
    "lenet-61706-mnist": RecordingPlan(30_000, 500, 600, 500, 4),
    "lenet-61706-fashion-mnist": RecordingPlan(20_000, 200, 500, 200, 4),
    "lenet-431080-mnist": RecordingPlan(12_000, 100, 300, 100, 6),
    "lenet-431080-fashion-mnist": RecordingPlan(10_000, 100, 300, 100, 6),
}
"""Of the published evaluation."""

QUICK_PLAN = RecordingPlan(400, 20, 20, 20, 2)
"""Of minutes instead of hours, and of all other runs."""


def plan_of(run: RunName, quick: bool) -> RecordingPlan:
    return QUICK_PLAN if quick else PLANS.get(str(run), QUICK_PLAN)


def record(
    root: Path,
    run: RunName,
    plan: RecordingPlan,
    rules: Sequence[str],
    committees: Committees,
    progress: Progress,
    data_dir: Path | None = None,
) -> None:
    """Train and replay as far as it was not done before."""
    store = StepStore(root / str(run))
    missing = set(plan.kept) - set(store.steps())
    if missing:
        dataset, policy = load_dataset(run.dataset, data_dir), policy_of(GUIDED, run.model)
        claim_folder(store.folder, policy, dataset)
        length = max(missing) + 1
        for t, _, step in honest_run(policy, dataset.train, length, missing):
            if step:
                store.save_step(step)
            progress(f"training {run}", t + 1, length)
    for rule in rules:
        done = set(store.replayed(rule))
        steps = [t for t in plan.replayed(rule) if t not in done]
        if not steps:
            continue
        policy = policy_of(rule, run.model)
        with committees() as committee:
            replayer = Replayer(committee, policy, StepReplays(policy, WIDTH))
            for count in replay_and_record(replayer, store, rule, steps):
                progress(f"replaying {run}, {rule}", count, len(steps))


@contextmanager
def three_processes() -> Iterator[Committee]:
    with LocalCommittee() as local, local.session(seconds=SESSION_SECONDS) as committee:
        yield committee


def three_threads() -> AbstractContextManager[Committee]:
    return MemoryCommittee()


def replayed_by(
    committees: Committees,
) -> Callable[[Policy, Sequence[HonestStep]], Sequence[Replayed]]:
    """What replays steps with a committee that is only there while it is needed."""

    def replay_all(policy: Policy, steps: Sequence[HonestStep]) -> Sequence[Replayed]:
        if not steps:
            return []
        with committees() as committee:
            replayer = Replayer(committee, policy, StepReplays(policy, WIDTH))
            return list(replayer.replay_all(steps))

    return replay_all
