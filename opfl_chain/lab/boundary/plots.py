"""Plots of an evaluation: rejections, trade-off, excess over a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.boundary.evaluated import Evaluated
from opfl_chain.lab.boundary.floors import SIZES
from opfl_chain.render.plots import BLUE, GREY, RED, SERIES, add_legend, dress, new_figure, save
from opfl_chain.rules.registry import rule_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Reals = NDArray[np.float64]

_LEAST_UNITS_DRAWN = 0.5
_TAIL = 950
"""Every quantile above it is labelled: these are close together and decide most verdicts."""


def draw_calibration_steps(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Plot false rejections over the number of calibration steps, by rule and run."""
    figure, (axes,) = new_figure(7.2, 4.2)
    runs = list(dict.fromkeys(_run_of(row) for row in rows))
    for (rule, run), group in groupby(rows, lambda row: (row["rule"], _run_of(row))):
        points = list(group)
        axes.plot(
            [row["calibration_steps"] for row in points],
            [row["frr"] for row in points],
            marker="o",
            linestyle="--" if rule_named(rule).for_comparison else "-",
            color=SERIES[runs.index(run) % len(SERIES)],
            label=f"{rule}, {run}",
        )
    axes.set_xscale("log")
    sizes = sorted({row["calibration_steps"] for row in rows})
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("calibration steps")
    axes.set_title("Honest held-out steps rejected")
    add_legend(axes)
    dress(axes)
    save(figure, path)


def draw_trade_off(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Plot rejected honest steps and detection floors over the safety factor."""
    figure, (rejections, floors) = new_figure(9.6, 4.0, columns=2)
    for color, (run, group) in zip(SERIES, groupby(rows, _run_of), strict=False):
        points = list(group)
        factors = [row["alpha"] for row in points]
        rejected = [row["rejected"] for row in points]
        label = f"{run} ({points[0]['honest_steps']:,} steps)"
        rejections.plot(factors, rejected, marker="o", color=color, label=label)
        for kind, style in (("dense", "-"), ("top1pct", "--")):
            sizes = [row[f"floor_{kind}_100"] or math.nan for row in points]
            floors.plot(factors, sizes, style, marker=".", color=color)
    rejections.set_title("Honest held-out steps rejected")
    add_legend(rejections)
    floors.set_yscale("log")
    floors.set_ylim(SIZES[0], SIZES[-1])
    floors.set_title("Cheats always rejected: dense, top 1 % (dashed)")
    for axes in (rejections, floors):
        axes.title.set_fontsize(10)
        axes.set_xlabel("safety factor")
        dress(axes)
    save(figure, path)


def draw_excess(evaluated: Sequence[Evaluated], path: Path) -> None:
    """Plot the largest excess of every step over the run, for rules that compare steps."""
    found = []
    for each in evaluated:
        profiles = list(each.records.profiles.values())
        if series := each.records.rule.largest_of_steps(each.boundary, profiles):
            found.append((each, series))
    if not found:
        return
    figure, panels = new_figure(8.4, 2.6 * len(found), rows=len(found))
    for axes, (each, series) in zip(panels, found, strict=True):
        axes.plot(
            list(each.records.profiles),
            [max(units, _LEAST_UNITS_DRAWN) for units in series.steps],
            linestyle="",
            marker=".",
            markersize=3,
            color=BLUE,
        )
        axes.axhline(series.bound, color=RED, linewidth=1, label="bound")
        axes.axvline(each.calibration[-1], color=GREY, linewidth=1, linestyle=":")
        axes.set_yscale("log")
        axes.set_title(f"{each.records.run}: {series.title}")
        axes.set_ylabel(series.unit)
        dress(axes)
    axes.set_xlabel("step of training (dotted: end of calibration)")
    save(figure, path)


def _run_of(row: dict[str, Any]) -> str:
    batch = f"-batch{row['batch_size']}" if row["batch_size"] > 1 else ""
    return f"{row['model']}-{row['dataset']}{batch}"


def draw_profiles(evaluated: Evaluated, path: Path) -> None:
    """Plot the median and range over held-out steps, and the bound."""
    records = evaluated.records
    profiles = [records.profiles[t] for t in evaluated.held_out]
    panels = records.rule.panels(evaluated.boundary, records.policy, profiles)
    if not panels:
        return
    figure, all_axes = new_figure(5.2 * len(panels), 3.8, columns=len(panels))
    for axes, panel in zip(all_axes, panels, strict=True):
        _draw(axes, records.policy.quantile_grid, panel.steps, panel.bounds)
        axes.set_title(panel.title)
    add_legend(all_axes[0])
    figure.suptitle(f"{records.run}, rule {records.rule.name}", fontsize=11)
    save(figure, path)


def _draw(axes: Axes, grid: Sequence[int], values: Reals, bounds: Reals | None) -> None:
    places = np.arange(len(grid))  # evenly spaced: the last quantiles are close, and decide
    # A logarithmic axis has no zero: draw it at the smallest positive value.
    drawn = values if bounds is None else np.vstack([values, bounds])
    positive = np.append(drawn[drawn > 0], np.inf)
    least = positive.min() if np.isfinite(positive.min()) else 1.0
    low, middle, high = (
        np.maximum(each, least) for each in np.quantile(values, (0, 0.5, 1), axis=0)
    )
    axes.fill_between(places, low, high, color=BLUE, alpha=0.2, linewidth=0, label="range")
    axes.plot(places, middle, color=BLUE, label="median of held-out steps")
    if bounds is not None:
        axes.plot(places, np.maximum(bounds, least), color=RED, label="bound")
    axes.set_yscale("log")
    shown = [place for place in places if place % 4 == 0 or grid[place] > _TAIL]
    axes.set_xticks(shown, [f"{grid[place] / 1000:g}" for place in shown], rotation=60)
    axes.set_xlabel("quantile")
    dress(axes)
