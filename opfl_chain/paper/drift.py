"""`drift`: the effect of a client that moves as far as its verifier allows in every round.

It always moves in the same direction: against the gradient of its own data at the start. Every
submission is verified, with replays in MPC if the verifier is OPFL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.adversaries.gradients.adaptive import Drift
from opfl_chain.adversaries.gradients.attack import AttackedStep, AttackState
from opfl_chain.adversaries.gradients.simple import flipped
from opfl_chain.lab.calibration.steps import HonestStep
from opfl_chain.paper.federation import CLIENTS, Federation, FederationResult, Start, Submission
from opfl_chain.paper.lab_run import LabRun
from opfl_chain.paper.results import Cells, LabSettings
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Replay, Replayed
from opfl_chain.rules.registry import BUILTIN_RULES
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.verifier import Reference, Verifier

Array = NDArray[np.float32]
ReplayAll = Callable[[Policy, Sequence[HonestStep]], Sequence[Replayed]]

PART = 0.5
"""Part of the boundary that a cheat uses; at 0.75, rounding of replays sometimes exposes it."""
DIRECTION_EXAMPLES = 500


def drift(
    lab: LabRun, settings: LabSettings, replay_all: ReplayAll, cells: Cells
) -> dict[str, Any]:
    """Run one federation per verifier, and one without a cheat."""
    federation, start = _federation(lab, settings)
    slope = federation.loss_gradient(start.weights, min(DIRECTION_EXAMPLES, settings.drift_start))
    direction = -slope / np.float32(np.linalg.norm(slope))
    honest = federation.run(None)
    rows = []
    for done, verifier in enumerate(lab.verifiers, 1):
        row = partial(_row, lab, federation, honest, direction, verifier, replay_all)
        rows.append(cells.of(verifier.name, row))
        lab.progress("drifting", done, len(lab.verifiers))
    began = federation.evaluated(start.weights)
    return {
        **lab.descriptions,
        "clients": CLIENTS,
        "rounds": settings.drift_rounds,
        "trained_before": settings.drift_start,
        "part_of_boundary": PART,
        "at_the_start": {"accuracy": began.accuracy, "loss": began.loss},
        "all_honest": {
            "accuracy": honest.evaluation.accuracy,
            "loss": honest.evaluation.loss,
            "distance_moved": float(np.linalg.norm(honest.weights - start.weights)),
        },
        "rows": rows,
        "poison": cells.of("poison", lambda: _poison(lab, settings, replay_all)),
    }


def _federation(lab: LabRun, settings: LabSettings) -> tuple[Federation, Start]:
    *_, last = lab.trained(settings.drift_start + 1)
    start = Start(last.weights, last.state)
    return Federation(lab.policy, lab.dataset, start, settings.drift_rounds), start


def _row(
    lab: LabRun,
    federation: Federation,
    honest: FederationResult,
    direction: Array,
    verifier: Verifier,
    replay_all: ReplayAll,
) -> dict[str, Any]:
    submission, rounds = submission_against(lab, verifier, direction), federation.rounds
    outcome = federation.run(submission, keep=True)
    references = _references(lab, verifier, outcome.cheats, replay_all)
    accepted = [
        verifier.acceptance(each, reference)
        for each, reference in zip(outcome.submitted, references, strict=True)
    ]
    honestly = [verifier.acceptance(each.gradient, each) for each in references]
    moved = [
        norm(each - step.gradient) / norm(step.gradient)
        for each, step in zip(outcome.submitted, outcome.cheats, strict=True)
        if step.gradient.any()
    ]
    apart = outcome.weights - honest.weights
    return {
        "verifier": verifier.name,
        "accepted": float(np.sum(accepted)),
        "honest_accepted": float(np.sum(honestly)),
        "rounds": len(accepted),
        "relative_move_median": float(np.median(moved)),
        "accuracy": outcome.evaluation.accuracy,
        "loss": finite(outcome.evaluation.loss),
        "rounds_until_the_model_is_lost": outcome.rounds if outcome.rounds < rounds else None,
        "distance_from_honest_model": finite(norm(apart)),
        "distance_along_direction": finite(float(-apart.astype(np.float64) @ direction)),
    }


def norm(vector: NDArray[Any]) -> float:
    return float(np.linalg.norm(vector.astype(np.float64)))


def finite(value: float) -> float | None:
    """Return a number that JSON can hold, None if it is not finite."""
    return value if math.isfinite(value) else None


def submission_against(lab: LabRun, verifier: Verifier, direction: Array) -> Submission:
    """Return the largest accepted submission in a unit direction."""
    if isinstance(verifier, Opfl):
        return _within(verifier, direction)
    return lambda step: verifier.largest_submission(direction, _known(lab, verifier, step))


def _known(lab: LabRun, verifier: Verifier, step: HonestStep) -> Reference:
    """Return a reference with what the cheat knows before an audit."""
    public = lab.public_gradient(step.weights) if verifier.compares_with_public else None
    return Reference(step.gradient, public)


def _within(verifier: Opfl, direction: Array) -> Submission:
    attack, state = Drift(PART, direction), AttackState()

    def submit(step: HonestStep) -> Array:
        known = AttackedStep(
            step.t,
            verifier.policy,
            step.weights,
            step.examples,
            step.labels,
            step.gradient,
            step.logits,
            lambda examples, labels: step.gradient,
            verifier.boundary,
        )
        return attack.submit(known, state)

    return submit


def _references(
    lab: LabRun, verifier: Verifier, steps: Sequence[HonestStep], replay_all: ReplayAll
) -> list[Reference]:
    if isinstance(verifier, Opfl):
        return _replayed(verifier, steps, replay_all)
    return [_known(lab, verifier, step) for step in steps]


def _replayed(
    verifier: Opfl, steps: Sequence[HonestStep], replay_all: ReplayAll
) -> list[Reference]:
    policy, rule = verifier.policy, verifier.boundary.rule
    return [
        Reference(step.gradient, replays={rule: Replay.of(policy, replayed)})
        for step, replayed in zip(steps, replay_all(policy, steps), strict=True)
    ]


def _poison(lab: LabRun, settings: LabSettings, replay_all: ReplayAll) -> list[dict[str, Any]]:
    """Count accepted steps on labels that were poisoned before the commitment."""
    data = lab.dataset.train
    labels = flipped(data.labels, lab.dataset.classes)
    poisoned = replace(lab.dataset, train=replace(data, labels=labels))
    *_, last = lab.trained(settings.drift_start + 1)
    start = Start(last.weights, last.state)
    federation = Federation(lab.policy, poisoned, start, settings.poisoned_steps)
    steps = federation.run(None, keep=True).cheats
    rows = []
    for rule in BUILTIN_RULES:
        verifier = lab.opfl(rule)
        references = _replayed(verifier, steps, replay_all)
        accepted = [verifier.acceptance(each.gradient, each) for each in references]
        rows.append({"rule": rule.name, "steps": len(steps), "accepted": int(np.sum(accepted))})
    return rows
