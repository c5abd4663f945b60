"""Honest steps of a training run, and the store of steps and their replays."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.errors import RecordNotWritten, StoreDamaged
from opfl_chain.learning.data.examples import Examples
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.local_step import LocalStep, StepResult
from opfl_chain.learning.optimizers import ModelOptimizer, OptimizerState
from opfl_chain.learning.proved_client import ProvedStep
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.closing import Tolerance
from opfl_chain.rules.evidence import Replayed

Array = NDArray[np.float32]
_STEPS = "steps"
ANY_TOLERANCE: Final = Tolerance(1, 1)
"""Advice and the gradient that it implies do not depend on the tolerance."""


@dataclass(frozen=True, eq=False)
class HonestStep:
    """A client's inputs and results in one round, in the formats of the local step."""

    t: int
    weights: Array
    """Flat, in canonical order."""
    examples: Array
    labels: NDArray[np.int64]
    gradient: Array
    logits: Array
    pre_activations: Array
    """Flat, in the order of the model's ReLUs."""


@dataclass(frozen=True, eq=False)
class TrainedStep:
    """One round of a client that trains alone, with the state of its optimizer."""

    t: int
    weights: Array
    state: OptimizerState[Array]
    examples: Array
    labels: NDArray[np.int64]
    result: StepResult

    def computed(self, result: StepResult) -> HonestStep:
        """Return the step with these results, as a client that proves it has them."""
        computed = result.gradient, result.logits, result.relu_inputs
        return HonestStep(self.t, self.weights, self.examples, self.labels, *computed)


def trained_steps(
    policy: Policy, examples: Examples, steps: int, kept: Collection[int] = (), client: int = 0
) -> Iterator[TrainedStep]:
    """Train one client alone, deterministic to the byte. Kept steps have their pre-activations."""
    local = LocalStep.of_policy(policy)
    layout = local.model.layout
    weights = layout.flatten(initial_parameters(layout, policy.seeds.model))
    optimizer = ModelOptimizer.of_policy(policy)
    state = optimizer.start(weights)
    data = ClientData(policy, examples, client)
    for t in range(steps):
        images, labels = data.batch(t)
        result = local.run(layout.unflatten(weights), images, labels, pre_activations=t in kept)
        yield TrainedStep(t, weights, state, images, labels, result)
        state, weights = optimizer.update(state, weights, result.gradient)


def honest_run(
    policy: Policy, examples: Examples, steps: int, kept: Collection[int], client: int = 0
) -> Iterator[tuple[int, Array, HonestStep | None]]:
    """Train one client alone. Yields each step's number, its weights and, if kept, the step."""
    committed = Committed(policy)
    for each in trained_steps(policy, examples, steps, kept, client):
        step = _honest_step(each, committed.result(each)) if each.t in kept else None
        yield each.t, each.weights, step


class Committed:
    """The results that honest clients of a policy commit to.

    A client that proves its step runs it along its proof. Training goes on from the step without
    proof, so that a run is the same whichever of its steps are kept.
    """

    def __init__(self, policy: Policy) -> None:
        self._layout = model_of(policy).layout
        self._proved = ProvedStep(policy, ANY_TOLERANCE) if policy.proof is not None else None

    def result(self, trained: TrainedStep) -> StepResult:
        """Return the result of a step as its client commits to it."""
        if self._proved is None:
            return trained.result
        weights = self._layout.unflatten(trained.weights)
        return self._proved.run(weights, trained.examples, trained.labels).result


def _honest_step(trained: TrainedStep, result: StepResult) -> HonestStep:
    return HonestStep(
        trained.t,
        trained.weights,
        trained.examples,
        trained.labels,
        result.gradient,
        result.logits,
        result.relu_inputs,
    )


def spread_steps(first: int, spread: int, steps: int) -> list[int]:
    """Return the `first` steps of a run, and `spread` others spaced evenly over the rest."""
    rest = np.linspace(first, steps - 1, spread + 1, dtype=np.int64)[1:]
    return sorted({*range(first), *(int(t) for t in rest)})


class StepStore:
    """The records of one training run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save_step(self, step: HonestStep) -> None:
        _write(self._path(_STEPS, step.t), dataclasses.asdict(step))

    def load_step(self, t: int) -> HonestStep:
        fields = _read(self._path(_STEPS, t), HonestStep)
        return HonestStep(**{**fields, "t": int(fields["t"])})

    def save_replay(self, rule: str, t: int, replayed: Replayed) -> None:
        fields = dataclasses.asdict(replayed)
        _write(self._path(rule, t), fields)

    def load_replay(self, rule: str, t: int) -> Replayed:
        fields = _read(self._path(rule, t), Replayed)
        gradient = fields.pop("gradient")
        return Replayed(gradient, **{name: int(value) for name, value in fields.items()})

    def steps(self) -> list[int]:
        """Return the recorded steps, in order."""
        return sorted(self._numbers(_STEPS))

    def replayed(self, rule: str) -> list[int]:
        """Return the replayed steps, in order."""
        return sorted(self._numbers(rule))

    def _numbers(self, kind: str) -> Iterator[int]:
        return (int(path.stem) for path in (self.folder / kind).glob("*.npz"))

    def _path(self, kind: str, t: int) -> Path:
        return self.folder / kind / f"{t:07d}.npz"


def _write(path: Path, fields: dict[str, Any]) -> None:
    partial = path.with_suffix(f".{os.getpid()}.partial")
    content = io.BytesIO()  # an unfinished zip file on disk would raise again when closed
    np.savez(content, **fields)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content.getbuffer())
        partial.replace(path)
    except OSError as error:
        raise RecordNotWritten(path, error) from error
    finally:
        partial.unlink(missing_ok=True)


def _read(path: Path, kind: type[HonestStep | Replayed]) -> dict[str, Any]:
    try:
        with path.open("rb") as file, np.load(file) as stored:
            fields = dict(stored)
    except (OSError, ValueError, EOFError, BadZipFile, KeyError, TypeError) as error:
        raise StoreDamaged(path, str(error)) from error
    if fields.keys() != {field.name for field in dataclasses.fields(kind)}:
        raise StoreDamaged(path, f"it holds {', '.join(fields) or 'nothing'}")
    return fields
