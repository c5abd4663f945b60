"""A calibration from training to records, in a folder that an interrupted run leaves usable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opfl_chain.calibration.boundaries import Observation
from opfl_chain.calibration.errors import CommitteeKeepsFailing
from opfl_chain.calibration.identity import RECORDS, claim_folder
from opfl_chain.calibration.plan import Plan
from opfl_chain.calibration.replayer import Replayer
from opfl_chain.calibration.side_by_side import WIDTH, StepReplays
from opfl_chain.calibration.steps import honest_run
from opfl_chain.calibration.store import StepStore
from opfl_chain.mpc.errors import SessionError
from opfl_chain.mpc.local_committee import LocalCommittee
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.examples import Dataset

Progress = Callable[[str, int, int], None]
"""What is being done, how many steps of it are, and of how many."""

MOST_FAILURES = 3
"""Sessions in a row that may fail without a step being replayed."""
SESSION_SECONDS, SECONDS_PER_STEP = 600.0, 60.0
"""Only a session that hangs gets there: lost and silent members are noticed in seconds."""


@dataclass(frozen=True)
class CalibrationRun:
    """The records of one policy and data set, made as far as they are missing."""

    policy: Policy
    dataset: Dataset
    folder: Path

    def __post_init__(self) -> None:
        claim_folder(self.folder, self.policy, self.dataset)

    @property
    def store(self) -> StepStore:
        return StepStore(self.folder / RECORDS)

    @property
    def rule(self) -> str:
        """The boundary that replays of this policy are for."""
        return rule_of(self.policy)

    def recorded(self, plan: Plan) -> int:
        """How many replays are there already. Raises if one of them is damaged."""
        found = set(plan.kept) & set(self.store.steps()) & set(self.store.replayed(self.rule))
        for t in found:
            self._observation(t)
        return len(found)

    def train(self, plan: Plan, progress: Progress) -> None:
        """Record the steps that are not yet; training starts from the beginning for them."""
        missing = set(plan.kept) - set(self.store.steps())
        length = max(missing, default=-1) + 1
        for t, _, step in honest_run(self.policy, self.dataset.train, length, missing):
            if step:
                self.store.save_step(step)
            progress("training", t + 1, length)

    def replay(self, plan: Plan, progress: Progress, notice: Callable[[str], None]) -> None:
        """Record the replays that are not yet, in a new session whenever one fails."""
        replays = StepReplays(self.policy, WIDTH)
        failures = 0
        while missing := self._missing(plan):
            try:
                self._session(replays, missing, plan, progress)
            except SessionError as error:
                in_vain = len(self._missing(plan)) == len(missing)
                failures = failures + 1 if in_vain else 0
                if failures > MOST_FAILURES:
                    raise CommitteeKeepsFailing(failures, error) from error
                notice(f"{str(error).splitlines()[0]} Going on in a new session.")

    def observations(self, steps: Sequence[int]) -> Iterator[Observation]:
        """Recorded steps beside their replays, one at a time: they are large."""
        return map(self._observation, steps)

    def _missing(self, plan: Plan) -> list[int]:
        done = set(self.store.replayed(self.rule))
        return [t for t in plan.kept if t not in done]

    def _session(
        self, replays: StepReplays, missing: Sequence[int], plan: Plan, progress: Progress
    ) -> None:
        total = len(plan.kept)
        seconds = SESSION_SECONDS + SECONDS_PER_STEP * len(missing)
        with LocalCommittee() as local, local.session(seconds=seconds) as committee:
            replayer = Replayer(committee, self.policy, replays)
            for done in replay_and_record(replayer, self.store, self.rule, missing):
                progress("replaying", total - len(missing) + done, total)

    def _observation(self, t: int) -> Observation:
        gradient = self.store.load_step(t).gradient
        return Observation.of(self.policy, gradient, self.store.load_replay(self.rule, t))


def rule_of(policy: Policy) -> str:
    return "guided" if policy.replay.kind == "guided" else "paper"


def replay_and_record(
    replayer: Replayer, store: StepStore, rule: str, steps: Sequence[int]
) -> Iterator[int]:
    """Replay recorded steps, and say after each how many are done."""
    replayed = replayer.replay_all(store.load_step(t) for t in steps)
    for done, (t, each) in enumerate(zip(steps, replayed, strict=True), 1):
        store.save_replay(rule, t, each)
        yield done
