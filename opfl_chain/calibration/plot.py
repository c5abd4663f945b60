"""The picture of a calibration: honest steps, and the bound that was made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.calibration.boundaries import Observation
from opfl_chain.protocol.boundary import PaperBoundary
from opfl_chain.protocol.guided import GuidedBoundary
from opfl_chain.protocol.profile import real_profile
from opfl_chain.protocol.quantiles import quantiles
from opfl_chain.protocol.rules import Boundary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HONEST, _BOUND, _QUIET = "#1f6f8b", "#c0562f", "#8a8f98"
_SMALLEST_SHARE = 1e-9
"""Of a relative discrepancy that is told from zero."""
_TAIL = 950
"""Every quantile above it is labelled: they are close to each other, and decide most."""


def draw(
    boundary: Boundary, steps: Sequence[int], observations: Sequence[Observation], path: Path
) -> None:
    """Draw what honest steps came to at each quantile, and their bound, into a PNG file."""
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(10.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    if isinstance(boundary, GuidedBoundary):
        _draw_excess(left, boundary, observations)
        _draw_advice(right, boundary, steps, observations)
    else:
        _draw_profiles(left, right, boundary, observations)
    for axes in (left, right):
        axes.grid(axis="y", color="#e4e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(bottom=0)
        axes.title.set_fontsize(11)
        axes.legend(frameon=False, fontsize=9)
    partial = path.with_suffix(".partial")
    try:
        figure.savefig(partial, format="png", dpi=160)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _draw_profiles(
    left: Axes, right: Axes, boundary: PaperBoundary, observations: Sequence[Observation]
) -> None:
    rules = observations[0].policy.fixed_point
    epsilon = boundary.epsilon * rules.quantum
    profiles = [
        real_profile(
            rules.decode_words(each.gradient),
            rules.decode_words(each.replay),
            boundary.grid,
            epsilon,
        )
        for each in observations
    ]
    absolute = np.array([profile.absolute for profile in profiles])
    bounds = [bound * rules.quantum for bound in boundary.absolute]
    _draw_quantiles(left, boundary.grid, absolute, bounds, rules.quantum)
    _draw_guard(left, boundary.infinity * rules.quantum)
    left.set_title("Absolute discrepancy")
    relative = np.array([profile.relative for profile in profiles])
    bounds = [2 / (factor + 1) for factor in boundary.relative]
    _draw_quantiles(right, boundary.grid, relative, bounds, _SMALLEST_SHARE)
    right.set_title("Relative discrepancy")


def _draw_excess(axes: Axes, boundary: GuidedBoundary, observations: Sequence[Observation]) -> None:
    units = np.array([quantiles(each.excess.units, boundary.grid) for each in observations])
    _draw_quantiles(axes, boundary.grid, units, boundary.bounds, 1)
    _draw_guard(axes, boundary.infinity)
    axes.set_title("Excess over the allowance, in units of the step's scale")


def _draw_advice(
    axes: Axes,
    boundary: GuidedBoundary,
    steps: Sequence[int],
    observations: Sequence[Observation],
) -> None:
    replayed = [each.replayed for each in observations]
    of_activations = [each.activation_error for each in replayed]
    over = [max(each.wrong_side, each.over_ceiling) for each in replayed]
    axes.scatter(steps, of_activations, s=12, color=_HONEST, label="error of activations")
    axes.scatter(
        steps, over, s=12, color=_QUIET, marker="x", label="beyond a mask or ceiling", clip_on=False
    )
    axes.axhline(boundary.mask_tolerance, color=_BOUND, linewidth=2, label="tolerance")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xlabel("training step")
    axes.set_title("Deviation from the advice, in quanta")


def _draw_quantiles(
    axes: Axes,
    grid: Sequence[int],
    values: NDArray[Any],
    bounds: Sequence[float],
    resolution: float,
) -> None:
    """Logarithmic, but linear below the resolution: many quantiles are exactly zero."""
    places = np.arange(len(grid))
    lowest, highest = values.min(axis=0), values.max(axis=0)
    axes.fill_between(places, lowest, highest, color=_HONEST, alpha=0.2, label="range")
    median = np.median(values, axis=0)
    axes.plot(places, median, color=_HONEST, linewidth=2, label="median", clip_on=False)
    axes.plot(places, bounds, color=_BOUND, linewidth=2, label="bound")
    axes.set_yscale("symlog", linthresh=resolution)
    shown = [place for place in places if place % 4 == 2 or grid[place] > _TAIL]
    axes.set_xticks(shown, [f"{grid[place] / 1000:g}" for place in shown], fontsize=8)
    axes.set_xlabel("quantile of the coordinates")


def _draw_guard(axes: Axes, bound: float) -> None:
    axes.axhline(bound, color=_BOUND, linewidth=1, linestyle="--", label="bound of the largest")
