"""`drift`: what a client gains that moves as far as its verifier allows, in every round.

It always moves in the same direction: against the gradient of its own data at the beginning. Each
of its submissions is verified, with replays in MPC where the verifier is OPFL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.attacks.attack import AttackedStep
from opfl_chain.attacks.drift import Drift
from opfl_chain.attacks.labels import flipped
from opfl_chain.attacks.state import AttackState
from opfl_chain.calibration.boundaries import Observation
from opfl_chain.calibration.replayer import Replayed
from opfl_chain.calibration.steps import HonestStep
from opfl_chain.evaluation.lab.federation import CLIENTS, Federation, Outcome, Start, Submission
from opfl_chain.evaluation.lab.lab_run import LabRun
from opfl_chain.evaluation.lab.results import Cells
from opfl_chain.evaluation.lab.settings import LabSettings
from opfl_chain.evaluation.records import RULES
from opfl_chain.protocol.policy import Policy
from opfl_chain.verifiers.norms import EiffelNormBall, NoVerifier, RoflL2, RoflLinf
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.risefl import RiseflGaussian
from opfl_chain.verifiers.verifier import Reference, Replay, Verifier

Array = NDArray[np.float32]
ReplayAll = Callable[[Policy, Sequence[HonestStep]], Sequence[Replayed]]

UNBOUNDED = 10.0
"""How many times its own norm a cheat submits where nothing bounds it: the largest of the paper."""
PART = 0.5
"""Of the boundary: replays round, and the cheat must not fail. At 0.75 it does, though rarely."""
ACCEPTED_WITH = 1 - 1e-4
"""The probability with which RiseFL accepts a submission."""
DIRECTION_EXAMPLES = 500


def drift(
    lab: LabRun, settings: LabSettings, replay_all: ReplayAll, cells: Cells
) -> dict[str, Any]:
    """One row for each verifier, and one without a cheat."""
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
    honest: Outcome,
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
    """A number as JSON has it: none if it is out of range."""
    return value if math.isfinite(value) else None


def submission_against(lab: LabRun, verifier: Verifier, direction: Array) -> Submission:
    """The farthest that a verifier allows in a direction of length one."""
    if isinstance(verifier, RoflL2):
        return lambda step: np.float32(verifier.bound * (1 - 1e-6)) * direction
    if isinstance(verifier, RoflLinf):
        return lambda step: np.float32(verifier.bound) * np.sign(direction)
    if isinstance(verifier, EiffelNormBall):
        radius = np.float32(verifier.radius * (1 - 1e-6))
        return lambda step: lab.public_gradient(step.weights) + radius * direction
    if isinstance(verifier, RiseflGaussian):
        length = np.float32(verifier.norm_accepted_with(ACCEPTED_WITH))
        return lambda step: length * direction
    if isinstance(verifier, Opfl):
        return _within(verifier, direction)
    assert isinstance(verifier, NoVerifier)
    return lambda step: (UNBOUNDED * norm(step.gradient) * direction).astype(np.float32)


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
        return _replayed(verifier.policy, verifier.boundary.rule, steps, replay_all)
    if isinstance(verifier, EiffelNormBall):
        return [Reference(step.gradient, lab.public_gradient(step.weights)) for step in steps]
    return [Reference(step.gradient) for step in steps]


def _replayed(
    policy: Policy, rule: str, steps: Sequence[HonestStep], replay_all: ReplayAll
) -> list[Reference]:
    found = []
    for step, replayed in zip(steps, replay_all(policy, steps), strict=True):
        seen = Observation.of(policy, step.gradient, replayed)
        replay = Replay(seen.replay, seen.headroom, replayed.wrong_side, replayed.over_ceiling)
        found.append(Reference(step.gradient, replays={rule: replay}))
    return found


def _poison(lab: LabRun, settings: LabSettings, replay_all: ReplayAll) -> list[dict[str, Any]]:
    """Honest steps on labels that were poisoned before they were committed to."""
    data = lab.dataset.train
    labels = flipped(data.labels, lab.dataset.classes)
    poisoned = replace(lab.dataset, train=replace(data, labels=labels))
    *_, last = lab.trained(settings.drift_start + 1)
    start = Start(last.weights, last.state)
    federation = Federation(lab.policy, poisoned, start, settings.poisoned_steps)
    steps = federation.run(None, keep=True).cheats
    rows = []
    for rule in RULES:
        verifier = lab.opfl(rule)
        references = _replayed(verifier.policy, rule, steps, replay_all)
        accepted = [verifier.acceptance(each.gradient, each) for each in references]
        rows.append({"rule": rule, "steps": len(steps), "accepted": int(np.sum(accepted))})
    return rows
