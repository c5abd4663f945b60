"""Pictures of an evaluation: rejections, trade-off, excess over a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opfl_chain.evaluation.evaluated import Evaluated
from opfl_chain.evaluation.floors import SIZES
from opfl_chain.evaluation.profiles import GuidedProfile
from opfl_chain.evaluation.records import GUIDED
from opfl_chain.protocol.guided import GuidedBoundary

COLORS = ("#1f6f8b", "#c0562f", "#6a8d3c", "#7d5ba6")
BOUND = "#b3261e"
QUIET = "#8a8f98"
_LEAST_UNITS_DRAWN = 0.5


def draw_calibration_steps(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """False rejections over the number of calibration steps, by rule and run."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    runs = list(dict.fromkeys(_run_of(row) for row in rows))
    for (rule, run), group in groupby(rows, lambda row: (row["rule"], _run_of(row))):
        points = list(group)
        axes.plot(
            [row["calibration_steps"] for row in points],
            [row["frr"] for row in points],
            marker="o",
            linestyle="-" if rule == GUIDED else "--",
            color=COLORS[runs.index(run) % len(COLORS)],
            label=f"{rule}, {run}",
        )
    axes.set_xscale("log")
    sizes = sorted({row["calibration_steps"] for row in rows})
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("calibration steps")
    axes.set_title("Honest held-out steps rejected")
    axes.legend(fontsize=8, frameon=False)
    dress(axes)
    save(figure, path)


def draw_trade_off(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """What a safety factor costs and gains: honest steps rejected, and what a cheat may change."""
    figure = Figure(figsize=(9.6, 4.0), layout="constrained")
    rejections, floors = figure.subplots(1, 2)
    for color, (run, group) in zip(COLORS, groupby(rows, _run_of), strict=False):
        points = list(group)
        factors = [row["alpha"] for row in points]
        rejected = [row["rejected"] for row in points]
        label = f"{run} ({points[0]['honest_steps']:,} steps)"
        rejections.plot(factors, rejected, marker="o", color=color, label=label)
        for kind, style in (("dense", "-"), ("top1pct", "--")):
            sizes = [row[f"floor_{kind}_100"] or math.nan for row in points]
            floors.plot(factors, sizes, style, marker=".", color=color)
    rejections.set_title("Honest held-out steps rejected")
    rejections.legend(fontsize=8, frameon=False)
    floors.set_yscale("log")
    floors.set_ylim(SIZES[0], SIZES[-1])
    floors.set_title("Cheats always rejected: dense, top 1 % (dashed)")
    for axes in (rejections, floors):
        axes.title.set_fontsize(10)
        axes.set_xlabel("safety factor")
        dress(axes)
    save(figure, path)


def draw_excess(evaluated: Sequence[Evaluated], path: Path) -> None:
    """The largest excess of every recorded step over the training run, with its bound."""
    figure = Figure(figsize=(8.4, 2.6 * len(evaluated)), layout="constrained")
    for axes, each in zip(
        figure.subplots(len(evaluated), 1, squeeze=False)[:, 0], evaluated, strict=True
    ):
        boundary, profiles = each.boundary, each.records.profiles
        assert isinstance(boundary, GuidedBoundary)
        largest = [p.largest for p in profiles.values() if isinstance(p, GuidedProfile)]
        axes.plot(
            list(profiles),
            [max(units, _LEAST_UNITS_DRAWN) for units in largest],
            linestyle="",
            marker=".",
            markersize=3,
            color=COLORS[0],
        )
        axes.axhline(boundary.infinity, color=BOUND, linewidth=1, label="bound")
        axes.axvline(each.calibration[-1], color=QUIET, linewidth=1, linestyle=":")
        axes.set_yscale("log")
        axes.set_title(f"{each.records.run}: largest excess of each step")
        axes.set_ylabel("units")
        dress(axes)
    axes.set_xlabel("step of training (dotted: end of calibration)")
    save(figure, path)


def dress(axes: Axes) -> None:
    axes.grid(axis="y", color="#e4e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.title.set_fontsize(11)


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="png", dpi=140)


def _run_of(row: dict[str, Any]) -> str:
    return f"{row['model']}-{row['dataset']}"
