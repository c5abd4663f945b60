"""`drift`: the effect of a client that moves as far as its verifier allows in every round.

It always moves in the same direction: against the gradient of its own data at the start. Every
submission is verified, with replays in MPC if the verifier is OPFL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.adversaries.gradients.adaptive import Drift
from opfl_chain.adversaries.gradients.attack import AttackedStep, AttackState
from opfl_chain.adversaries.gradients.simple import flipped
from opfl_chain.lab.calibration.steps import ANY_TOLERANCE, HonestStep
from opfl_chain.learning.proved_client import ProvedStep
from opfl_chain.paper.federation import CLIENTS, Federation, FederationResult, Start, Submission
from opfl_chain.paper.lab_run import LabRun
from opfl_chain.paper.results import Cells, LabSettings
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Replay, Replayed
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.verifier import Reference, Verifier

Array = NDArray[np.float32]
ReplayAll = Callable[[Policy, Sequence[HonestStep]], Sequence[Replayed]]

PART = 0.5
"""Part of the boundary that a cheat uses; at 0.75, rounding of replays sometimes exposes it."""
DIRECTION_EXAMPLES = 500
NEAR = 0.05
"""Share of accuracy, loss and distance that may depend on the processor."""


def drift(
    lab: LabRun, settings: LabSettings, replay_all: ReplayAll, cells: Cells
) -> dict[str, Any]:
    """Run one federation per verifier, and one without a cheat."""
    found = _Drift(lab, settings, replay_all, cells)
    began = found.federation.evaluated(found.start.weights)
    return {
        **lab.descriptions,
        "clients": CLIENTS,
        "rounds": settings.drift_rounds,
        "trained_before": settings.drift_start,
        "part_of_boundary": PART,
        "at_the_start": {"accuracy": began.accuracy, "loss": began.loss},
        "all_honest": found.all_honest,
        "rows": found.rows(lab.verifiers),
        "poison": cells.of("poison", lambda: _poison(lab, settings, replay_all)),
    }


def more_drift(
    lab: LabRun,
    settings: LabSettings,
    replay_all: ReplayAll,
    cells: Cells,
    known: Mapping[str, Any],
) -> dict[str, Any]:
    """Run one federation for each further rule, beside the honest one of a known table.

    On another processor honest clients end a little elsewhere. Further rows are compared with where
    they end here, which the table says.
    """
    found = _Drift(lab, settings, replay_all, cells)
    there = known["all_honest"]
    if any(abs(ours - there[name]) > NEAR * there[name] for name, ours in found.all_honest.items()):
        raise lab.inconsistent(
            f"honest clients end at {found.all_honest}, in the known table at {there}"
        )
    poison = cells.of("poison", lambda: _poison(lab, settings, replay_all))
    return {
        **known,
        "all_honest_of_further_rules": found.all_honest,
        "rows": [*known["rows"], *found.rows(lab.opfl_verifiers)],
        "poison": [*known["poison"], *poison],
    }


class _Drift:
    """A federation without a cheat, and what those with one are compared with."""

    def __init__(
        self, lab: LabRun, settings: LabSettings, replay_all: ReplayAll, cells: Cells
    ) -> None:
        self._lab, self._replay_all, self._cells = lab, replay_all, cells
        self.federation, self.start = _federation(lab, settings)
        self._honest = self.federation.run(None)
        examples = min(DIRECTION_EXAMPLES, settings.drift_start)
        slope = self.federation.loss_gradient(self.start.weights, examples)
        self._direction = -slope / np.float32(np.linalg.norm(slope))

    @property
    def all_honest(self) -> dict[str, float]:
        honest = self._honest
        return {
            "accuracy": honest.evaluation.accuracy,
            "loss": honest.evaluation.loss,
            "distance_moved": float(np.linalg.norm(honest.weights - self.start.weights)),
        }

    def rows(self, verifiers: Sequence[Verifier]) -> list[dict[str, Any]]:
        rows = []
        for done, verifier in enumerate(verifiers, 1):
            row = partial(
                _row,
                self._lab,
                self.federation,
                self._honest,
                self._direction,
                verifier,
                self._replay_all,
            )
            rows.append(self._cells.of(verifier.name, row))
            self._lab.progress("drifting", done, len(verifiers))
        return rows


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
    outcome = federation.run(submission, keep=True, prover=_prover(verifier))
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


def _prover(verifier: Verifier) -> ProvedStep | None:
    """Return what runs the steps of a client that proves them, if it must."""
    if isinstance(verifier, Opfl) and verifier.policy.proof is not None:
        return ProvedStep(verifier.policy, ANY_TOLERANCE)
    return None


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
    rows = []
    for rule in lab.rules:
        verifier = lab.opfl(rule)
        steps = federation.run(None, keep=True, prover=_prover(verifier)).cheats
        references = _replayed(verifier, steps, replay_all)
        accepted = [verifier.acceptance(each.gradient, each) for each in references]
        rows.append({"rule": rule.name, "steps": len(steps), "accepted": int(np.sum(accepted))})
    return rows
