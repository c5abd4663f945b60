"""`adaptive-pgd` and `tail-pgd`: attackers that know the verifier and minimise its penalty."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from opfl_chain.adversaries.pgd import PgdSettings, attack
from opfl_chain.learning.devices import deterministic
from opfl_chain.paper.instances import Instances, best_candidates, instances_of, success_rate
from opfl_chain.paper.lab_run import LabRun
from opfl_chain.paper.results import Cells, LabSettings
from opfl_chain.protocol.policy import PAPER_GRID
from opfl_chain.verifiers.norms import NoVerifier
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.verifier import Verifier

BATCH = 24
"""Instances attacked at once."""

SUPPORTS: dict[float, tuple[int, ...]] = {
    0.01: (*PAPER_GRID, 990),
    0.10: tuple(p for p in PAPER_GRID if p <= 900),
}
"""The parts of the coordinates moved by tail attacks, and the paper's grids against them."""


def adaptive_pgd(lab: LabRun, settings: LabSettings, cells: Cells) -> dict[str, Any]:
    """Attack every verifier at every beta, on the instances of each stage."""
    chosen = _instances(lab, settings.stages, settings.instances)
    return {
        **lab.descriptions,
        "instances": {stage: list(each.steps) for stage, each in chosen.items()},
        "learning_rates": [
            {"stage": stage, **row}
            for stage, each in chosen.items()
            for row in _at_learning_rates(each, settings, cells)
        ],
        "largest_accepted_move": _reaches(lab, chosen),
        "rows": _rows(lab, chosen, lab.verifiers, settings, cells),
    }


def more_adaptive_pgd(
    lab: LabRun, settings: LabSettings, cells: Cells, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Attack OPFL by further rules, on the instances of a known table."""
    chosen = _instances(lab, settings.stages, settings.instances)
    require_same(lab, known["instances"], {name: list(x.steps) for name, x in chosen.items()})
    rows = _rows(lab, chosen, lab.opfl_verifiers, settings, cells)
    return {
        **known,
        "largest_accepted_move": [*known["largest_accepted_move"], *_reaches(lab, chosen)],
        "rows": [*known["rows"], *rows],
    }


def require_same(lab: LabRun, known: object, ours: object) -> None:
    """Raise unless attacks are on the instances of a known table."""
    if known != ours:
        raise lab.inconsistent("the known table has other instances than these records")


def _rows(
    lab: LabRun,
    chosen: Mapping[str, Instances],
    verifiers: Sequence[Verifier],
    settings: LabSettings,
    cells: Cells,
) -> list[dict[str, Any]]:
    rows = []
    for stage, instances in chosen.items():
        for verifier in verifiers:
            for beta in settings.betas:
                compute = partial(_cell, instances, verifier, beta, settings.seed)
                cell = cells.of(f"{instances.digest}, {verifier.name}, {beta:g}", compute)
                rows.append({"stage": stage, **cell})
                done, total = len(rows), len(chosen) * len(verifiers) * len(settings.betas)
                lab.progress("adaptive attacks", done, total)
    return rows


def _reaches(lab: LabRun, chosen: Mapping[str, Instances]) -> list[dict[str, Any]]:
    return [
        {"stage": stage, **_reach(each, lab.opfl(rule))}
        for stage, each in chosen.items()
        for rule in lab.rules
    ]


def _at_learning_rates(
    instances: Instances, settings: LabSettings, cells: Cells
) -> list[dict[str, Any]]:
    """Attack without a verifier at other learning rates."""
    rows = []
    for factor in settings.rate_factors:
        faster = instances.at_rate(factor)
        for beta in settings.betas:
            compute = partial(_cell, faster, NoVerifier(), beta, settings.seed)
            cell = cells.of(f"{faster.digest}, rate x {factor:g}, {beta:g}", compute)
            rows.append({"learning_rate": faster.victims.rate, **cell})
    return rows


def tail_pgd(lab: LabRun, settings: LabSettings, cells: Cells) -> dict[str, Any]:
    """Attack few coordinates, against the grids that the paper chose for them."""
    (instances,) = _instances(lab, [settings.stages[0]], settings.instances).values()
    return {
        **lab.descriptions,
        "stage": settings.stages[0],
        "instances": list(instances.steps),
        "grids": {f"{support:g}": list(grid) for support, grid in SUPPORTS.items()},
        "rows": _tail_rows(lab, instances, [NoVerifier()], settings, cells),
    }


def more_tail_pgd(
    lab: LabRun, settings: LabSettings, cells: Cells, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Attack OPFL by further rules, on the instances of a known table."""
    (instances,) = _instances(lab, [settings.stages[0]], settings.instances).values()
    require_same(lab, known["instances"], list(instances.steps))
    rows = [*known["rows"], *_tail_rows(lab, instances, [], settings, cells)]
    supports = list(SUPPORTS)
    return {**known, "rows": sorted(rows, key=lambda row: supports.index(row["support"]))}


def _tail_rows(
    lab: LabRun,
    instances: Instances,
    others: Sequence[Verifier],
    settings: LabSettings,
    cells: Cells,
) -> list[dict[str, Any]]:
    """Attack these verifiers, and OPFL by each rule of the lab."""
    cases: list[tuple[float, Verifier]] = [
        (support, verifier)
        for support, grid in SUPPORTS.items()
        for verifier in (*others, *(lab.opfl(rule, grid) for rule in lab.rules))
    ]
    rows = []
    for support, verifier in cases:
        for beta in settings.betas:
            compute = partial(_cell, instances, verifier, beta, settings.seed, support)
            key = f"{instances.digest}, {support:g}, {verifier.name}, {beta:g}"
            cell = cells.of(key, compute)
            rows.append({"support": support, **cell})
            lab.progress("attacks on the tail", len(rows), len(cases) * len(settings.betas))
    return rows


def _instances(lab: LabRun, stages: Sequence[str], count: int) -> dict[str, Instances]:
    return instances_of(lab, stages, count)


def _cell(
    instances: Instances,
    verifier: Verifier,
    beta: float,
    seed: int,
    support: float | None = None,
) -> dict[str, Any]:
    """Attack one verifier on all instances at one beta."""
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
        raise AssertionError(f"{verifier.name} accepted a gradient beyond its reach at beta {beta}")
    row = {
        "verifier": verifier.name,
        "beta": beta,
        "instances": count,
        "asr": success_rate(flipped.tolist(), accepted.tolist()),
        "flipped": int(flipped.sum()),
        "nothing_so_far_is_accepted": int(hopeless.sum()),
        "seconds": time.perf_counter() - started,
    }
    audited = verifier.audit(submitted, np.random.default_rng([seed, 1]))
    if audited is not None:
        row["asr_of_randomised_audit"] = float(np.mean(audited & flipped))
    return row


def _hopeless(instances: Instances, verifier: Verifier, beta: float) -> NDArray[np.bool_]:
    """Return a mask of instances whose verifier accepts no gradient at the distance of beta."""
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
    """Return the effect, acceptance and gradient of each instance's best candidate."""
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
                # Acceptance does not matter without an effect.
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
    """Return the largest accepted move relative to the gradient's norm, and its effect.

    The attacker uses all that is allowed, each coordinate in the direction that raises the loss.
    """
    instances = instances.judged_by(verifier)
    slopes = instances.victims.loss_gradients()
    parts, moved = [], []
    for reference, slope in zip(instances.references, slopes.double().numpy(), strict=True):
        allowed = verifier.allowed_moves(reference, np.abs(slope))
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
