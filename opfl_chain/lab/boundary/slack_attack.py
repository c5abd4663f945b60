"""Attackers of proofs: how far the slack that a proof leaves can move a gradient.

A proof bounds the residuals of all rounded equations together, by random projections: with coins
that a client can grind, residuals up to `SLACK` times the bound pass with probability 2^-100. So an
attacker may shift every error and every probability by a little, where it moves the gradient most.
Power iteration finds that direction, to first order. Beside that, it moves the committed gradient
by the tolerance. Activations and sides of ReLUs are exact (`side_choice`).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from opfl_chain.lab.boundary.headroom import HeadroomPlan, calibrated_on
from opfl_chain.lab.boundary.records import RunName, quiet
from opfl_chain.lab.calibration.implied import implied_gradient, lift_in
from opfl_chain.lab.calibration.proving import StepProver, form_of, tolerance_of
from opfl_chain.lab.calibration.run import Progress
from opfl_chain.lab.calibration.steps import (
    HonestStep,
    TrainedStep,
    trained_steps,
)
from opfl_chain.learning.data.examples import Dataset
from opfl_chain.learning.local_step import parameter_tensors
from opfl_chain.learning.model import relu_shapes
from opfl_chain.learning.operations.table import OPERATIONS, Operations
from opfl_chain.learning.proved_client import ProvedResult
from opfl_chain.learning.proved_step import logit_errors, mask_words
from opfl_chain.learning.registry import model_of
from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.closing import TOLERANCE_BITS
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.proof.statement import Rules, Words
from opfl_chain.render.text import markdown_table
from opfl_chain.rules.rule import AnyRule

SLACK: Final = 3.2
"""A vector so many times beyond the bound passes 128 projections with probability 2^-100."""
PROVED_SLACK: Final = 3.79
"""The same as it is proved for every vector (docs/PROOF.md, T2)."""
PROVED_SHORT, PROVED_LONG = 3.88, 1.82
"""Factors by which G - g may be longer than it seems, and g may seem longer than it is, at 2^-101
each: their product is the factor that is proved for G against g."""
ITERATIONS: Final = 12
_SQUARINGS: Final = 16
"""The first power of the softmax is squared so often. Its sum has the quantum that they leave."""
_CEILING = "softmax.ceiling"
_LEAST_ERRORS: Final = 2.0**-4.5
"""The least length of the errors of the logits, unless the lift is the largest."""
_STEP: Final = 1e-3
"""The size of finite differences, as a part of the budget."""


@dataclass(frozen=True)
class SlackAttack:
    """The attack on one step. Moves are relative to the norm of the gradient."""

    lift: int
    residuals_move: float
    """The largest move through residuals of all layers, to first order."""
    tolerance_move: float
    """The largest move of the committed gradient within both tolerances, at the honest lift."""
    low_lift_move: float
    """The same at the lowest lift that the size of the errors allows."""
    proved_move: float
    """The largest move through residuals, comparison and tolerances, at the better of both lifts,
    with the factors that are proved for every vector."""
    comparison_move: float
    """The part of it that residuals of the comparison have, if they take the whole budget."""
    raised_norm: float
    """The norm of the gradient as it is compared, at the lower lift."""
    compared_bits: int
    """The fraction bits in which it is compared."""

    @property
    def total(self) -> float:
        """The largest move through residuals and tolerances together, masks left alone."""
        return self.residuals_move + max(self.tolerance_move, self.low_lift_move)


class _Shifted(torch.autograd.Function):
    """Passes values on, and adds noise to the errors that come back."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, noise: Tensor) -> Tensor:
        ctx.save_for_backward(noise)
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *errors: Tensor) -> tuple[Tensor, None]:
        (noise,) = ctx.saved_tensors
        return errors[0] + noise, None


class _NoisyOperations(Operations):
    """Operations in which ReLUs follow masks, and errors are shifted."""

    def __init__(self, masks: Mapping[str, Tensor], noise: Mapping[str, Tensor]) -> None:
        super().__init__("torch")
        self._masks, self._noise = masks, noise

    def apply(self, operation: str, *arrays: Any, name: str, **options: Any) -> Any:
        if not OPERATIONS[operation].has_mask:
            return super().apply(operation, *arrays, name=name, **options)
        shifted = _Shifted.apply(arrays[0], self._noise[f"{name}.error"])  # type: ignore[no-untyped-call]
        return shifted * self._masks[name]


class NoisyStep:
    """A step in float64 with shifts of all errors, in the units of their residuals."""

    def __init__(
        self,
        policy: Policy,
        rules: Rules,
        step: HonestStep,
        proved: ProvedResult,
        lowered: float = 1.0,
    ) -> None:
        """Prepare a step whose errors are scaled up less than the advice does, by a factor."""
        self._model = model_of(policy)
        self._batch = policy.data.batch_size
        held = policy.fixed_point.__class__(policy.fraction_bits)
        weights = self._model.layout.unflatten(held.nearest(step.weights).astype(np.float64))
        self._tensors = parameter_tensors(self._model.layout, weights)
        self._examples = torch.tensor(held.nearest(step.examples).astype(np.float64))
        shapes = relu_shapes(self._model, self._batch)
        self._masks = {
            name: torch.tensor(
                mask_words(proved.statement, proved.advised, name).reshape(shape),
                dtype=torch.float64,
            )
            for name, shape in shapes.items()
        }
        raised = logit_errors(proved.statement, proved.advised) * 2.0 ** lift_in(proved)
        self._errors = torch.tensor(raised / lowered)
        self._labels = torch.tensor(step.labels)
        error = 2.0 ** -(rules.error_bits + 1)
        logits = (self._batch, self._model.classes)
        power = math.sqrt(7 / 3) * 2.0 ** (_SQUARINGS - rules.unit_bits - 1)
        self.units: dict[str, tuple[tuple[int, ...], float]] = {
            **{f"{name}.error": (shape, error) for name, shape in shapes.items()},
            "loss.errors": (logits, error),
            "softmax.powers": (logits, power),
            "softmax.sum": ((self._batch, 1), sum_unit(rules)),
        }

    def gradient(self, residuals: Mapping[str, Tensor]) -> Tensor:
        """Return the gradient, scaled up by the lift, if equations have these residuals."""
        noise = {name: residuals[name] * unit for name, (_, unit) in self.units.items()}
        operations = _NoisyOperations(self._masks, noise)
        logits = self._model.logits(self._tensors, self._examples, operations)
        errors = self._shifted_errors(logits, noise) + noise["loss.errors"]
        names = self._model.layout.trainable.names
        parts = torch.autograd.grad(
            logits, [self._tensors[name] for name in names], errors, create_graph=True
        )
        return torch.cat([each.reshape(-1) for each in parts])

    def _shifted_errors(self, logits: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """Return errors as they follow from shifted logits: the label's is minus the others'."""
        exact = torch.softmax(logits, 1)
        rows = torch.arange(len(self._labels))
        ratio = exact / exact.detach() * (1 + noise["softmax.powers"] + noise["softmax.sum"])
        others = self._errors.clone()
        others[rows, self._labels] = 0.0
        moved = others * ratio
        label = torch.zeros_like(moved)
        label[rows, self._labels] = 1.0
        return moved - label * moved.sum(1, keepdim=True)

    def zeros(self) -> dict[str, Tensor]:
        """Return residuals of zero, to be differentiated by."""
        return {
            name: torch.zeros(shape, dtype=torch.float64, requires_grad=True)
            for name, (shape, _) in self.units.items()
        }

    def largest_move(self, budget: float, seed: int = 0) -> tuple[float, dict[str, Tensor]]:
        """Return the largest move by residuals of this length, and these residuals."""
        generator = torch.Generator().manual_seed(seed)
        found = {
            name: torch.randn(shape, dtype=torch.float64, generator=generator)
            for name, (shape, _) in self.units.items()
        }
        honest = self.gradient(self.zeros()).detach()
        moved = 0.0
        for _ in range(ITERATIONS):
            found = _scaled(found, budget)
            little = {name: each * _STEP for name, each in found.items()}
            apart = (self.gradient(little).detach() - honest) / _STEP
            moved = float(apart.norm())
            at = self.zeros()
            pulled = torch.autograd.grad((self.gradient(at) * apart).sum(), list(at.values()))
            following = dict(zip(at, pulled, strict=True))
            if not any(bool(each.any()) for each in following.values()):
                break
            last, found = found, following
        return moved / max(float(honest.norm()), float(np.finfo(np.float64).tiny)), last


def sum_unit(rules: Rules) -> float:
    """Return a unit of the sum of probabilities: half of its quantum."""
    return 2.0 ** (_SQUARINGS - rules.unit_bits - 1)


def _scaled(residuals: Mapping[str, Tensor], length: float) -> dict[str, Tensor]:
    now = math.sqrt(sum(float((each * each).sum()) for each in residuals.values()))
    return {name: each * (length / now) for name, each in residuals.items()}


def attack(prover: StepProver, step: TrainedStep) -> SlackAttack:
    """Attack one step with all that a proof leaves open."""
    policy, tolerance, proved = prover.policy, prover.tolerance, prover.run(step)
    rules = policy.proof
    assert rules is not None, "the policy has no proofs"
    honest = step.computed(proved.result)
    statement, lift = proved.statement, lift_in(proved)
    budget = SLACK * math.sqrt(statement.residuals)
    moved, _ = NoisyStep(policy, rules, honest, proved).largest_move(budget)
    raised = float(np.linalg.norm(implied_gradient(policy, proved)))
    raised *= policy.data.batch_size * 2.0**lift
    errors = logit_errors(statement, proved.advised) * 2.0**lift
    lowered = min(max(float(np.linalg.norm(errors)) / _LEAST_ERRORS, 1.0), 2.0**lift)
    moved_low, _ = NoisyStep(policy, rules, honest, proved, lowered).largest_move(budget)
    one = 2.0**-TOLERANCE_BITS
    relative, absolute = tolerance.relative * one, tolerance.absolute * one
    compared = next(each.wire.bits for each in statement.words if each.name == "gradient.apart")

    def allowed(size: float) -> float:
        return SLACK * math.hypot(relative, absolute / size)

    def comparison(size: float) -> float:
        """Residuals of both sides add to the tolerance: of one length they do most if equal."""
        words = math.sqrt(2) * PROVED_SLACK * math.sqrt(statement.residuals) / 2
        seeming = words * 2.0**-compared / math.sqrt(rules.projections / 2)
        return PROVED_SHORT * seeming / size

    def proved_move(by_residuals: float, size: float) -> float:
        """All residuals share one budget; tolerances are beside it."""
        together = math.hypot(by_residuals * PROVED_SLACK / SLACK, comparison(size))
        return together + PROVED_SHORT * math.hypot(PROVED_LONG * relative, absolute / size)

    return SlackAttack(
        lift,
        moved,
        allowed(raised),
        allowed(raised / lowered),
        max(proved_move(moved, raised), proved_move(moved_low, raised / lowered)),
        comparison(raised / lowered),
        raised / lowered,
        compared,
    )


class _ShiftedProver(Prover):
    """A cheat that scales all probabilities of its step by shifting the ceilings."""

    shift: int = 0

    def advise(self, group: Words) -> Elements:
        found = super().advise(group)
        if group.name != _CEILING:
            return found
        return found + Elements.of_python([self.shift] * found.size).reshape(*found.shape)


def seen_shifts(prover: StepProver, step: TrainedStep, part: float, tries: int) -> float:
    """Return how often real coins reveal ceilings shifted by a part of the residuals' bound.

    This is the direction that power iteration finds: it moves the gradient along itself.
    """
    proved = prover.run(step)
    statement, batch = proved.statement, prover.policy.data.batch_size
    moved = part * math.sqrt(statement.residuals / batch) * sum_unit(statement.rules)
    bits = next(group.wire.bits for group in statement.words if group.name == _CEILING)
    seen = 0
    for _ in range(tries):
        gradient, given = prover.words(step, proved.result.gradient * np.float32(1 + moved))
        cheat = _ShiftedProver(statement, bytes(32), secrets.token_bytes(32), [gradient], [given])
        cheat.shift = -round(moved * 2**bits)
        cheat.advise_all()
        seen += not cheat.rehearse(secrets.token_bytes(32)).holds
    return seen / tries


PARTS: Final = (0.5, 0.9, 1.2, 1.6)
"""The parts of the bound on residuals that a real cheat uses, alone."""


def slack_row(
    run: RunName,
    rule: AnyRule,
    dataset: Dataset,
    plan: HeadroomPlan,
    tries: int = 20,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Attack steps spaced evenly over a run, by a boundary of its first steps."""
    policy = run.policy(rule)
    boundary = calibrated_on(policy, rule, dataset, plan.calibration_steps, progress)
    tolerance = tolerance_of(boundary)
    prover = StepProver(policy, tolerance)
    chosen = plan.kept[plan.calibration_steps :]
    found: list[SlackAttack] = []
    seen: dict[float, list[float]] = {part: [] for part in PARTS}
    for step in trained_steps(policy, dataset.train, max(chosen) + 1, chosen):
        if step.t in chosen and (each := attack(prover, step)).lift < policy.largest_lift:
            found.append(each)
            for part in PARTS:
                seen[part].append(seen_shifts(prover, step, part, tries))
            progress(f"attacking {run}", len(found), len(chosen))
    return {
        "run": str(run),
        "rule": rule.name,
        "dataset": dataset.name,
        **asdict(plan),
        "statement": form_of(policy),
        "steps": len(found),
        "slack": SLACK,
        "proved_slack": PROVED_SLACK,
        "proved_factors_of_gradient": [PROVED_SHORT, PROVED_LONG],
        "relative_tolerance": tolerance.relative / 2.0**TOLERANCE_BITS,
        "residuals_move_max": max(each.residuals_move for each in found),
        "tolerance_move_max": max(each.tolerance_move for each in found),
        "low_lift_move_max": max(each.low_lift_move for each in found),
        "total_move_max": max(each.total for each in found),
        "proved_total_move_max": max(each.proved_move for each in found),
        "comparison_move_max": max(each.comparison_move for each in found),
        "raised_norm_min": min(each.raised_norm for each in found),
        "compared_bits_min": min(each.compared_bits for each in found),
        **{f"shift_{part:g}_seen": float(np.mean(rates)) for part, rates in seen.items()},
    }


def slack_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    moves = ("residuals", "tolerance", "low_lift", "total", "proved_total")
    names = ("run", ">steps", *(f">{move.replace('_', ' ')}" for move in moves))
    cells = (
        (
            row["run"],
            f"{row['steps']:,}",
            *(f"{row[f'{move}_move_max']:.1e}" for move in moves),
            *(f"{row[f'shift_{part:g}_seen']:.0%}" for part in PARTS),
        )
        for row in rows
    )
    shifts = (f">seen at {part:g}" for part in PARTS)
    return markdown_table([*names, *shifts], cells, tight=True)
