"""Training environments: the same step with other summation orders and number formats.

The torch and XLA environments are real. Two emulate GPUs, and are named as stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from opfl_chain.lab.boundary.evaluated import Evaluated, spread
from opfl_chain.lab.boundary.executions import (
    BF16_BITS,
    TF32_BITS,
    Computed,
    FloatStep,
    narrow_operations,
)
from opfl_chain.lab.boundary.floors import length
from opfl_chain.lab.calibration.steps import HonestStep
from opfl_chain.lab.statistics import Rate
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.model import Model, Option
from opfl_chain.learning.operations.table import Operations
from opfl_chain.learning.registry import model_named
from opfl_chain.protocol.advice import Advice, advise
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Observation, Profile, Replayed

Execution = Callable[..., Computed]
"""Executes a step, with the options `masks` and `errors` along a given path."""
Make = Callable[[Model, int | None], Execution]
"""Makes an execution from a model and its largest lift (None for a plain replay)."""

RECORDED = "torch, 1 thread, oneDNN"
"""The environment of the records, on a CPU."""
ReplayAll = Callable[[Policy, Sequence[HonestStep]], Sequence[Replayed]]
"""Replays steps in MPC."""


def environments_of(policy: Policy) -> dict[str, Execution]:
    """Return the environments by name, compiled once for all runs of a model and rule."""
    lift = policy.largest_lift if policy.replay.advised else None
    options = tuple(sorted(policy.model.parameters.items()))
    return _environments(policy.model.name, options, lift)


@cache
def _environments(
    name: str, options: tuple[tuple[str, Option], ...], largest_lift: int | None
) -> dict[str, Execution]:
    model = model_named(name, **dict(options))
    return {name: make(model, largest_lift) for name, make in ENVIRONMENTS.items()}


def _torch(threads: int, onednn: bool) -> Make:
    def make(model: Model, largest_lift: int | None) -> Execution:
        device = torch.device("cpu")
        local = LocalStep(model, device, threads=threads, largest_lift=largest_lift)

        def run(step: HonestStep, **path: Any) -> Computed:
            weights = model.layout.unflatten(step.weights)
            with _onednn(onednn):
                result = local.run(
                    weights, step.examples, step.labels, pre_activations=True, **path
                )
            return Computed(result.gradient, result.logits, result.relu_inputs)

        return run

    return make


def _xla(operations: Operations | None = None, double: bool = False) -> Make:
    def make(model: Model, largest_lift: int | None) -> Execution:
        return FloatStep(model, operations, double=double, largest_lift=largest_lift).run

    return make


@contextmanager
def _onednn(enabled: bool) -> Iterator[None]:
    module: Any = torch.backends.mkldnn  # the stubs do not declare it as writable
    before, module.enabled = module.enabled, enabled
    try:
        yield
    finally:
        module.enabled = before


ENVIRONMENTS: Mapping[str, Make] = {
    RECORDED: _torch(1, True),
    "torch, 2 threads, oneDNN": _torch(2, True),
    "torch, 1 thread, no oneDNN": _torch(1, False),
    "torch, 2 threads, no oneDNN": _torch(2, False),
    "XLA, float32": _xla(),
    "XLA, float64": _xla(double=True),
    "TF32-like products (stand-in)": _xla(narrow_operations(TF32_BITS)),
    "bf16-like products (stand-in)": _xla(narrow_operations(BF16_BITS)),
}


@dataclass
class Found:
    """Results of one environment."""

    apart: list[float] = field(default_factory=list)
    """Distances of its gradients from the recorded ones, relative to their norm."""
    profiles: list[Profile] = field(default_factory=list)
    to_replay: list[HonestStep] = field(default_factory=list)


def environment_rows(evaluated: Evaluated, replay_all: ReplayAll) -> list[dict[str, Any]]:
    """Return the rejections of honest steps by training environment."""
    records, extent = evaluated.records, evaluated.extent
    environments = environments_of(records.policy)
    found = {name: Found() for name in environments}
    steps = evaluated.sample(extent.environment_steps)
    for done, t in enumerate(steps, 1):
        step, replayed = records.step(t), records.store.load_replay(records.rule.name, t)
        path = records.path(t)
        for name, run in environments.items():
            there = replace(step, **vars(run(step, **path)))
            _compare(found[name], evaluated, step, replayed, there)
        records.progress(f"environments of {records.run}, {records.rule.name}", done, len(steps))
    return [_row(evaluated, name, each, replay_all) for name, each in found.items()]


def _compare(
    found: Found, evaluated: Evaluated, step: HonestStep, replayed: Replayed, there: HonestStep
) -> None:
    difference = there.gradient.astype(np.float64) - step.gradient
    norm = length(step.gradient.astype(np.float64))
    found.apart.append(float(np.linalg.norm(difference)) / norm)
    policy, rule = evaluated.records.policy, evaluated.records.rule
    if policy.replay.advised:
        known, told = _advice(policy, step), _advice(policy, there)
        if told.lift != known.lift or (told.masks != known.masks).any():
            found.to_replay.append(there)
            return
        quanta = float(1 << policy.fraction_bits)
        moved = int(np.ceil(np.abs(told.ceilings - known.ceilings).max() * quanta))
        replayed = replace(replayed, over_ceiling=replayed.over_ceiling + moved)
    found.profiles.append(rule.profile(Observation.of(policy, there.gradient, replayed)))


def _row(evaluated: Evaluated, name: str, found: Found, replay_all: ReplayAll) -> dict[str, Any]:
    policy, rule = evaluated.records.policy, evaluated.records.rule
    boundary = evaluated.boundary
    chosen = spread(found.to_replay, evaluated.extent.replays_per_environment)
    again = [
        rule.profile(Observation.of(policy, step.gradient, replayed))
        for step, replayed in zip(chosen, replay_all(policy, chosen), strict=True)
    ]
    return {
        **evaluated.names,
        "environment": name,
        "steps": len(found.apart),
        "same_gradient_steps": sum(each == 0 for each in found.apart),
        "relative_difference_median": float(np.median(found.apart)),
        "relative_difference_max": max(found.apart),
        "needs_another_replay": len(found.to_replay),
        **{f"recorded_replay_{k}": v for k, v in Rate.of(boundary, found.profiles).report.items()},
        **{f"another_replay_{k}": v for k, v in Rate.of(boundary, again).report.items()},
    }


def _advice(policy: Policy, step: HonestStep) -> Advice:
    return advise(step.pre_activations > 0, step.logits, step.labels, policy.largest_lift)
