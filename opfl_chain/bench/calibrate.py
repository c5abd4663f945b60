"""Benchmark of calibration replays, alternating with naive replays among three processes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opfl_chain.bench import naive
from opfl_chain.lab.calibration.replayer import WIDTH, Replayer, StepReplays, held, shared
from opfl_chain.lab.calibration.run import replay_and_record
from opfl_chain.lab.calibration.steps import HonestStep, StepStore, honest_run
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.model import Model
from opfl_chain.learning.registry import model_of
from opfl_chain.mpc.local import Committee, LocalCommittee
from opfl_chain.mpc.replay.arrays import EXAMPLES, TARGETS
from opfl_chain.mpc.replay.compiler import ExecutableCache
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.mpc.session.executable import Executable, MpcOptions
from opfl_chain.mpc.session.session import Session
from opfl_chain.mpc.session.shares import arithmetic_share
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.registry import DEFAULT_RULE

SESSION_SECONDS = 3600.0
_RULE = DEFAULT_RULE.name
Progress = Callable[[str], None]


@dataclass(frozen=True)
class CalibrateBench:
    """Seconds of each group of steps, and of the naive replay that followed it."""

    model: str
    steps: int
    seconds: tuple[float, ...]
    naive_seconds: tuple[float, ...]

    @property
    def report(self) -> dict[str, Any]:
        ours = sum(self.seconds) / self.steps
        naive_replay = statistics.median(self.naive_seconds)
        return {
            "model": self.model,
            "steps": self.steps,
            "side_by_side": WIDTH,
            "steps_per_minute": 60 / ours,
            "replay_seconds": ours,
            "naive_replay_seconds": naive_replay,
            "hundred_steps_in_naive_replays": 100 * ours / naive_replay,
        }


def bench_calibrate(model: Model, steps: int, progress: Progress) -> CalibrateBench:
    """Train, compile, start three processes, and alternate the two kinds of replays.

    Our time includes everything that a calibration does with a step: read it, share it, replay it,
    open the replay and record it. The naive time includes only the run itself.
    """
    policy = default_policy(model)
    with tempfile.TemporaryDirectory(prefix="opfl-bench-") as folder, LocalCommittee() as local:
        store = StepStore(Path(folder))
        progress("training")
        for _, _, step in honest_run(policy, synthetic_dataset().train, steps, range(steps)):
            if step:
                store.save_step(step)
        progress("compiling")
        replays = StepReplays(policy, WIDTH)
        options = MpcOptions(policy.fraction_bits)
        straightforward = ExecutableCache().compile(naive.replay_program(model, 1), options)
        with local.session("bench", seconds=SESSION_SECONDS) as committee:
            replayer = Replayer(committee, policy, replays)
            progress("warming up")
            _replay(replayer, store, [0])
            _naive_replay(committee, straightforward, policy, store.load_step(0))
            ours, theirs = [], []
            for group in groups(range(steps), WIDTH):
                progress(f"replaying ({group[0]} of {steps})")
                step = store.load_step(group[0])
                ours.append(_replay(replayer, store, group))
                theirs.append(_naive_replay(committee, straightforward, policy, step))
    return CalibrateBench(model.name, steps, tuple(ours), tuple(theirs))


def groups(steps: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (steps[start : start + size] for start in range(0, len(steps), size))


def _naive_replay(
    committee: Committee, executable: Executable, policy: Policy, step: HonestStep
) -> float:
    """Return the slowest member's seconds, from inputs to shares of the gradient."""
    form = policy.input_format
    training_input = shared(form.encode(step.examples, step.labels))
    shapes = {each.name: each.shape for each in executable.inputs}
    parts = {EXAMPLES: slice(0, form.feature_words), TARGETS: slice(form.feature_words, None)}
    weights = model_of(policy).layout.unflatten(step.weights)

    def member(session: Session) -> float:
        own, following = held(training_input, session.rank)
        secret = {
            name: arithmetic_share(
                session.rank,
                own[part].reshape(shapes[name]),
                following[part].reshape(shapes[name]),
                "float32",
            )
            for name, part in parts.items()
        }
        started = time.perf_counter()
        session.run(executable, {**weights, **secret})
        return time.perf_counter() - started

    return max(committee.each(member))


def _replay(replayer: Replayer, store: StepStore, steps: Sequence[int]) -> float:
    started = time.perf_counter()
    for _ in replay_and_record(replayer, store, _RULE, steps):
        pass
    return time.perf_counter() - started
