"""`adaptive-pgd` and `tail-pgd`: attackers that know the verifier, and descend on its penalty."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from opfl_chain.attacks.pgd import PgdSettings, attack
from opfl_chain.evaluation.lab.instances import Instances, instances_of
from opfl_chain.evaluation.lab.lab_run import LabRun
from opfl_chain.evaluation.lab.results import Cells
from opfl_chain.evaluation.lab.settings import LabSettings
from opfl_chain.evaluation.lab.success import best_candidates, success_rate
from opfl_chain.evaluation.records import RULES
from opfl_chain.protocol.policy import PAPER_GRID
from opfl_chain.training.devices import deterministic
from opfl_chain.verifiers.norms import NoVerifier
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.risefl import RiseflGaussian
from opfl_chain.verifiers.verifier import Verifier

BATCH = 24
"""Instances that are attacked at once."""

SUPPORTS: dict[float, tuple[int, ...]] = {
    0.01: (*PAPER_GRID, 990),
    0.10: tuple(p for p in PAPER_GRID if p <= 900),
}
"""The parts of the coordinates that tail attacks move, and the paper's grids against them."""


def adaptive_pgd(lab: LabRun, settings: LabSettings, cells: Cells) -> dict[str, Any]:
    """Every verifier at every strength, on instances of each choice of stages."""
    chosen = _instances(lab, settings.stages, settings.instances)
    rows = []
    for stage, instances in chosen.items():
        for verifier in lab.verifiers:
            for beta in settings.betas:
                compute = partial(_cell, instances, verifier, beta, settings.seed)
                cell = cells.of(f"{instances.digest}, {verifier.name}, {beta:g}", compute)
                rows.append({"stage": stage, **cell})
                done, total = len(rows), len(chosen) * len(lab.verifiers) * len(settings.betas)
                lab.progress("adaptive attacks", done, total)
    return {
        **lab.descriptions,
        "instances": {stage: list(each.steps) for stage, each in chosen.items()},
        "learning_rates": [
            {"stage": stage, **row}
            for stage, each in chosen.items()
            for row in _at_learning_rates(each, settings, cells)
        ],
        "largest_accepted_move": [
            {"stage": stage, **_reach(each, lab.opfl(rule))}
            for stage, each in chosen.items()
            for rule in RULES
        ],
        "rows": rows,
    }


def _at_learning_rates(
    instances: Instances, settings: LabSettings, cells: Cells
) -> list[dict[str, Any]]:
    """What attackers whom nobody verifies achieve in an update at other learning rates."""
    rows = []
    for factor in settings.rate_factors:
        faster = instances.at_rate(factor)
        for beta in settings.betas:
            compute = partial(_cell, faster, NoVerifier(), beta, settings.seed)
            cell = cells.of(f"{faster.digest}, rate x {factor:g}, {beta:g}", compute)
            rows.append({"learning_rate": faster.victims.rate, **cell})
    return rows


def tail_pgd(lab: LabRun, settings: LabSettings, cells: Cells) -> dict[str, Any]:
    """Attacks on few coordinates, against the grids that the paper chose for them."""
    (instances,) = _instances(lab, [settings.stages[0]], settings.instances).values()
    cases: list[tuple[float, Verifier]] = [
        (support, verifier)
        for support, grid in SUPPORTS.items()
        for verifier in _of_grid(lab, grid)
    ]
    rows = []
    for support, verifier in cases:
        for beta in settings.betas:
            compute = partial(_cell, instances, verifier, beta, settings.seed, support)
            key = f"{instances.digest}, {support:g}, {verifier.name}, {beta:g}"
            cell = cells.of(key, compute)
            rows.append({"support": support, **cell})
            lab.progress("attacks on the tail", len(rows), len(cases) * len(settings.betas))
    return {
        **lab.descriptions,
        "stage": settings.stages[0],
        "instances": list(instances.steps),
        "grids": {f"{support:g}": list(grid) for support, grid in SUPPORTS.items()},
        "rows": rows,
    }


def _of_grid(lab: LabRun, grid: Sequence[int]) -> list[Verifier]:
    return [NoVerifier(), *(lab.opfl(rule, grid) for rule in RULES)]


def _instances(lab: LabRun, stages: Sequence[str], count: int) -> dict[str, Instances]:
    return instances_of(lab, stages, count)


def _cell(
    instances: Instances,
    verifier: Verifier,
    beta: float,
    seed: int,
    support: float | None = None,
) -> dict[str, Any]:
    """All instances against one verifier at one strength."""
    started = time.perf_counter()
    instances = instances.judged_by(verifier)
    count = len(instances.steps)
    flipped, accepted = np.zeros(count, bool), np.zeros(count)
    submitted = instances.victims.gradients.numpy().copy()
    with deterministic():
        for start in range(0, count, BATCH):
            rows = slice(start, min(start + BATCH, count))
            found = _attacked(instances, verifier, beta, seed, support, rows)
            flipped[rows], accepted[rows], submitted[rows] = found
    hopeless = _hopeless(instances, verifier, beta)
    if (accepted > 0)[hopeless].any():
        raise AssertionError(f"{verifier.name} accepted what it cannot at beta {beta}")
    row = {
        "verifier": verifier.name,
        "beta": beta,
        "instances": count,
        "asr": success_rate(flipped.tolist(), accepted.tolist()),
        "flipped": int(flipped.sum()),
        "nothing_so_far_is_accepted": int(hopeless.sum()),
        "seconds": time.perf_counter() - started,
    }
    if isinstance(verifier, RiseflGaussian):
        audited = verifier.audit(submitted, np.random.default_rng([seed, 1]))
        row["asr_of_randomised_audit"] = float(np.mean(audited & flipped))
    return row


def _hopeless(instances: Instances, verifier: Verifier, beta: float) -> NDArray[np.bool_]:
    """Where no gradient at all is accepted that is as far from the honest one as beta says."""
    if not isinstance(verifier, Opfl):
        return np.zeros(len(instances.steps), bool)
    radii = beta * instances.victims.norms[:, 0].double().numpy()
    reaches = [verifier.farthest(each) for each in instances.references]
    return np.asarray(radii > 1.001 * np.array(reaches))


def _attacked(
    instances: Instances,
    verifier: Verifier,
    beta: float,
    seed: int,
    support: float | None,
    rows: slice,
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float32]]:
    """Of each instance the candidate that succeeds most: its effect, acceptance and gradient."""
    victims, references = instances.victims.take(rows), instances.references[rows]
    candidates = attack(
        victims,
        references,
        verifier,
        beta,
        PgdSettings(seed=seed),
        rows=instances.rows[rows],
        support=support,
    )
    flipped = np.stack([victims.flipped(each).numpy() for each in candidates])
    accepted = np.array(
        [
            [
                # Without an effect it does not matter whether it is accepted.
                verifier.acceptance(gradient.numpy(), reference) if effect else 0.0
                for gradient, reference, effect in zip(each, references, effects, strict=True)
            ]
            for each, effects in zip(candidates, flipped, strict=True)
        ]
    )
    best, places = best_candidates(flipped, accepted), np.arange(len(references))
    gradients = torch.stack(candidates)[best, places].numpy()
    return flipped[best, places], accepted[best, places], gradients


def _reach(instances: Instances, verifier: Opfl) -> dict[str, Any]:
    """How far a gradient may be moved at all, as a part of its norm, and what that achieves.

    The attacker takes all of the room, each coordinate in the direction that raises the loss.
    """
    instances = instances.judged_by(verifier)
    slopes = instances.victims.loss_gradients()
    parts, moved = [], []
    for reference, slope in zip(instances.references, slopes.double().numpy(), strict=True):
        allowed = verifier.room_in(reference, np.abs(slope))
        parts.append(np.linalg.norm(allowed) / np.linalg.norm(reference.gradient))
        moved.append(reference.gradient + np.sign(slope) * allowed)
    flipped = instances.victims.flipped(torch.tensor(np.stack(moved), dtype=torch.float32))
    return {
        "verifier": verifier.name,
        "beta_median": float(np.median(parts)),
        "beta_max": float(np.max(parts)),
        "flipped": int(flipped.sum()),
        "instances": len(parts),
    }
