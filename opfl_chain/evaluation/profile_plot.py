"""Discrepancies at each quantile beside their bounds, as in the appendix of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from opfl_chain.evaluation.evaluated import Evaluated
from opfl_chain.evaluation.plots import BOUND, COLORS, dress, save
from opfl_chain.evaluation.profiles import GuidedProfile, PaperProfile
from opfl_chain.protocol.boundary import PaperBoundary
from opfl_chain.protocol.guided import GuidedBoundary

Reals = NDArray[np.float64]

_NOTHING = 1e-12
_TAIL = 950


def draw_profiles(evaluated: Evaluated, path: Path) -> None:
    """The median and range over held-out steps, and the bound."""
    panels = _panels(evaluated)
    figure = Figure(figsize=(5.2 * len(panels), 3.8), layout="constrained")
    grid = evaluated.records.policy.quantile_grid
    for axes, (name, values, bound) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        _draw(axes, grid, values, bound)
        axes.set_title(name)
    figure.axes[0].legend(fontsize=8, frameon=False)
    figure.suptitle(f"{evaluated.records.run}, rule {evaluated.records.rule}", fontsize=11)
    save(figure, path)


def _panels(evaluated: Evaluated) -> list[tuple[str, Reals, Reals]]:
    boundary = evaluated.boundary
    profiles = [evaluated.records.profiles[t] for t in evaluated.held_out]
    if isinstance(boundary, GuidedBoundary):
        units = _table([p.units for p in profiles if isinstance(p, GuidedProfile)])
        return [("excess, units of the step's scale", units, np.array(boundary.bounds, float))]
    assert isinstance(boundary, PaperBoundary)
    paper = [p for p in profiles if isinstance(p, PaperProfile)]
    quantum = evaluated.records.policy.fixed_point.quantum
    absolute = _table([p.absolute for p in paper]) * quantum
    return [
        ("absolute, units of the gradient", absolute, np.array(boundary.absolute) * quantum),
        (
            "relative",
            _relative(_table([p.factors for p in paper])),
            _relative(np.array(boundary.relative, float)),
        ),
    ]


def _table(rows: Sequence[Any]) -> Reals:
    return np.array(rows, np.float64)


def _relative(factors: Reals) -> Reals:
    """The bound that a factor of the relative test stands for, 0 for the largest factors."""
    bounds = 2 / (factors + 1)
    return np.where(bounds < _NOTHING, 0.0, bounds)


def _draw(axes: Axes, grid: Sequence[int], values: Reals, bound: Reals) -> None:
    places = np.arange(len(grid))  # evenly: the last quantiles are close together, and decide
    # Zero has no place on a logarithmic axis: it is drawn at the smallest value there is.
    positive = np.concatenate([values[values > 0], bound[bound > 0], [np.inf]])
    least = positive.min() if np.isfinite(positive.min()) else 1.0
    low, middle, high = (
        np.maximum(each, least) for each in np.quantile(values, (0, 0.5, 1), axis=0)
    )
    axes.fill_between(places, low, high, color=COLORS[0], alpha=0.2, linewidth=0, label="range")
    axes.plot(places, middle, color=COLORS[0], label="median of held-out steps")
    axes.plot(places, np.maximum(bound, least), color=BOUND, label="bound")
    axes.set_yscale("log")
    shown = [place for place in places if place % 4 == 0 or grid[place] > _TAIL]
    axes.set_xticks(shown, [f"{grid[place] / 1000:g}" for place in shown], rotation=60)
    axes.set_xlabel("quantile")
    dress(axes)
