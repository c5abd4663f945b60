"""Choice of sides: whether a cheat can take the other side of a ReLU next to zero.

A value that near zero would have two gradients. Sides are exact as long as a wrong sign costs more
than the residuals' whole budget: `sign_window` computes it, and a cheat that takes the nearest
other side tries it against real coins.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opfl_chain.lab.boundary.evaluated import spread
from opfl_chain.lab.boundary.mask_attack import MaskAttack, MaskAttacker
from opfl_chain.lab.boundary.records import RunName, quiet
from opfl_chain.lab.boundary.slack_attack import PROVED_SLACK
from opfl_chain.lab.calibration.proving import StepProver, form_of
from opfl_chain.lab.calibration.run import Progress
from opfl_chain.lab.calibration.steps import ANY_TOLERANCE, TrainedStep, trained_steps
from opfl_chain.learning.data.examples import Dataset
from opfl_chain.learning.model import relu_shapes
from opfl_chain.learning.operations.nonlinear import mask_name
from opfl_chain.learning.proved_client import ProvedResult
from opfl_chain.learning.registry import model_of
from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.proof.statement import Words
from opfl_chain.render.text import markdown_table
from opfl_chain.rules.rule import AnyRule

_NO_CHOICE: Final = MaskAttack(0, 0.0, 0.0)
_SIGNS: Final = (".side", ".low", ".high")
"""Ends of the names of equations that show the sign of an integer."""
GOAL: Final = 5e-5
"""No attacker is to move a gradient by more than this part of its norm."""


def sign_window(statement: Statement) -> float:
    """Return how far from zero a value may be whose side can be chosen with the whole budget.

    It is zero if a sign that is wrong by a single integer costs more than the budget. Signs are
    those of ReLUs, and those of what is rounded off from activations.
    """
    budget, windows = PROVED_SLACK * math.sqrt(statement.residuals), [0.0]
    for each in statement.rounded:
        if each.name.endswith(_SIGNS):
            integers = budget * each.quantum / 2 / each.least
            windows.append(integers * 2.0**-each.expression.bits if integers >= 1 else 0.0)
    return max(windows)


class _OtherSide(Prover):
    """A cheat that takes the other side of one ReLU, and computes all that follows from it."""

    layer: str = ""
    place: int = 0

    def advise(self, group: Words) -> Elements:
        found = super().advise(group)
        if group.name != mask_name(self.layer):
            return found
        flat = found.to_python()
        flat[self.place] ^= 1
        return Elements.of_python(flat).reshape(*found.shape)


def other_side_is_seen(prover: StepProver, step: TrainedStep, proved: ProvedResult) -> bool:
    """Return whether real coins reveal a cheat that takes the nearest other side of a ReLU.

    Only what its advice leaves over counts, not the gradient, which a cheat would commit to anew.
    """
    near = int(np.abs(proved.result.relu_inputs).argmin())
    gradient, given = prover.words(step, proved.result.gradient)
    cheat = _OtherSide(proved.statement, bytes(32), secrets.token_bytes(32), [gradient], [given])
    for name, shape in relu_shapes(model_of(prover.policy), len(step.labels)).items():
        if near < (size := math.prod(shape)):
            cheat.layer, cheat.place = name, near
            break
        near -= size
    cheat.advise_all()
    usage = cheat.rehearse(secrets.token_bytes(32))
    return bool(usage.broken) or usage.bounds["residuals"] > 1


def side_row(
    run: RunName,
    rule: AnyRule,
    dataset: Dataset,
    training_steps: int,
    first: int,
    count: int,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Choose sides of ReLUs next to zero with all that is proved to pass.

    On so many steps of a run, spaced evenly from the `first` on.
    """
    policy = run.policy(rule)
    chosen = spread(range(first, training_steps), count)
    prover = StepProver(policy, ANY_TOLERANCE)
    window, seen, nearest = 0.0, 0, math.inf
    found: list[MaskAttack] = []
    for step in trained_steps(policy, dataset.train, training_steps, chosen):
        if step.t not in chosen:
            continue
        proved = prover.run(step)
        own = sign_window(proved.statement)
        attacker = MaskAttacker(model_of(policy), own)
        attacked = attacker.attack(step.computed(proved.result)) if own else _NO_CHOICE
        found.append(attacked)
        window = max(window, own)
        seen += other_side_is_seen(prover, step, proved)
        nearest = min(nearest, float(np.abs(proved.result.relu_inputs).min()))
        progress("choosing sides of ReLUs", len(found), len(chosen))
    return {
        "run": str(run),
        "statement": form_of(policy),
        "mask_training_steps": training_steps,
        "mask_window": window,
        "mask_steps": len(found),
        "steps_with_free_masks": sum(each.free_units > 0 for each in found),
        "free_masks_max": max(each.free_units for each in found),
        "steps_moved_beyond_goal_by_masks": sum(each.change_chosen > GOAL for each in found),
        "masks_move_max": max(each.change_chosen for each in found),
        "nearest_to_zero": nearest,
        "other_sides_seen": seen,
    }


def sides_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return what a choice of sides achieves as a Markdown table."""
    names = ("run", ">window", ">steps", ">with a choice", f">moved by more than {GOAL:.0e}")
    cells = (
        (
            row["run"],
            f"{row['mask_window']:.1e}",
            f"{row['mask_steps']:,}",
            f"{row['steps_with_free_masks']:,}",
            f"{row['steps_moved_beyond_goal_by_masks']:,}",
            f"{row['masks_move_max']:.1e}",
            f"{row['nearest_to_zero']:.1e}",
            f"{row['other_sides_seen']:,}",
        )
        for row in rows
    )
    return markdown_table(
        [*names, ">largest move", ">nearest value", ">other sides seen"], cells, tight=True
    )
