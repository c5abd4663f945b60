"""Plots of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opfl_chain.paper.published import TITLES
from opfl_chain.paper.tables import unique
from opfl_chain.render import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Report = Mapping[str, Any]
COLORS = {
    "none": plots.GREY,
    "rofl-l2": plots.GREEN,
    "rofl-linf": plots.OCHRE,
    "eiffel": plots.PURPLE,
    "risefl": plots.BLUE,
    "opfl-paper": plots.SALMON,
    "opfl-guided": plots.ORANGE,
}
OTHER = "#444"
"""The color of verifiers of plug-ins."""


def general_attacks(report: Report, path: Path) -> None:
    figure, axes = _figure(len(report["runs"]))
    for each, run in zip(axes, report["runs"], strict=True):
        attacks = run["attacks"]
        for place, name in enumerate(run["honest"]):
            heights = [100 * (attack["asr"][name] or 0.0) for attack in attacks]
            places = [index + 0.12 * (place - 3) for index in range(len(attacks))]
            each.bar(places, heights, 0.12, color=COLORS.get(name, OTHER), label=TITLES[name])
        each.set_xticks(
            range(len(attacks)), [a["attack"] for a in attacks], rotation=60, fontsize=8
        )
        each.set_title(run["run"])
        each.set_ylabel("attacks that succeed, %")
    _legend(figure, axes)
    _finish(figure, axes, path)


def adaptive_pgd(report: Report, path: Path) -> None:
    stages = list(report["instances"])
    figure, axes = _figure(len(stages))
    for each, stage in zip(axes, stages, strict=True):
        _draw_betas(each, [row for row in report["rows"] if row["stage"] == stage])
        each.set_title(f"{report['run']}, {stage}")
    _legend(figure, axes)
    _finish(figure, axes, path)


def tail_pgd(report: Report, path: Path) -> None:
    supports = unique(row["support"] for row in report["rows"])
    figure, axes = _figure(len(supports))
    for each, support in zip(axes, supports, strict=True):
        _draw_betas(each, [row for row in report["rows"] if row["support"] == support])
        each.set_title(f"{support:.0%} of the coordinates")
    _legend(figure, axes)
    _finish(figure, axes, path)


def drift(report: Report, path: Path) -> None:
    figure, (axes,) = _figure(1)
    rows = report["rows"]
    names = [TITLES[row["verifier"]] for row in rows]
    colors = [COLORS.get(row["verifier"], OTHER) for row in rows]
    axes.bar(names, [100 * row["accuracy"] for row in rows], color=colors)
    honest = 100 * report["all_honest"]["accuracy"]
    axes.axhline(honest, color=plots.INK, linewidth=1, linestyle=":", label="all honest")
    axes.set_ylabel("accuracy at the end, %")
    axes.set_title("A client that drifts as far as its verifier allows")
    axes.tick_params(axis="x", rotation=30, labelsize=8)
    plots.add_legend(axes)
    _finish(figure, [axes], path)


def cost(report: Report, path: Path) -> None:
    figure, (axes,) = _figure(1)
    rows = report["rows"]
    kinds = ("computation", "audits", "commitment_gate", "share_transfer", "aggregation", "chain")
    colors = (plots.GREY, plots.ORANGE, plots.BLUE, plots.GREEN, plots.PURPLE, plots.OCHRE)
    left = [0.0] * len(rows)
    for kind, color in zip(kinds, colors, strict=True):
        widths = [row["parts"].get(kind, 0.0) for row in rows]
        axes.barh([row["method"] for row in rows], widths, left=left, color=color, label=kind)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_xscale("symlog", linthresh=100)
    axes.invert_yaxis()
    axes.set_xlabel("seconds for 5,000 gradients (linear up to 100)")
    plots.add_legend(axes)
    _finish(figure, [axes], path)


def deterrence(report: Report, path: Path) -> None:
    figure, (left, right) = _figure(2)
    rows = report["rows"]
    rates = [row["audit_rate"] for row in rows]
    left.plot(rates, [row["formula"] for row in rows], color=plots.GREY, label="formula")
    left.plot(rates, [row["detected"] for row in rows], "o", color=plots.ORANGE, label="simulated")
    left.set_xscale("log")
    left.set_xlabel("audit rate")
    left.set_title("Probability that 100 cheating rounds are detected")
    plots.add_legend(left)
    profits = [row for row in report["profits"] if row["rejected_when_audited"] == 1.0]
    first = profits[0]["attack"] if profits else None
    for rate in (0.01, 0.05, 0.10):
        points = sorted(
            (row["deposit"], row["profit"])
            for row in profits
            if row["attack"] == first and row["audit_rate"] == rate
        )
        right.plot(*zip(*points, strict=True), marker="o", markersize=3, label=f"p = {rate:g}")
    right.axhline(0, color=plots.INK, linewidth=1, linestyle=":")
    right.set_xlabel("deposit, in units of the computation saved")
    right.set_title("What cheating earns")
    plots.add_legend(right)
    _finish(figure, [left, right], path)


FIGURES: dict[str, Callable[[Report, Path], None]] = {
    "general-attacks": general_attacks,
    "adaptive-pgd": adaptive_pgd,
    "tail-pgd": tail_pgd,
    "drift": drift,
    "cost": cost,
    "deterrence": deterrence,
}


def _draw_betas(axes: Axes, rows: Sequence[Report]) -> None:
    for name in unique(row["verifier"] for row in rows):
        points = [row for row in rows if row["verifier"] == name]
        betas, rates = ([row[field] for row in points] for field in ("beta", "asr"))
        heights = [100 * rate for rate in rates]
        axes.plot(betas, heights, marker="o", color=COLORS.get(name, OTHER), label=TITLES[name])
    axes.set_xscale("log")
    axes.set_xlabel("perturbation, relative to the norm of the gradient")
    axes.set_ylabel("attacks that succeed, %")


def _figure(panels: int) -> tuple[Figure, list[Axes]]:
    return plots.new_figure(7.2 if panels == 1 else 10.4, 4.2, columns=panels)


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Draw one legend for all panels, below them."""
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=4 if len(axes) == 1 else 7,
        frameon=False,
        fontsize=8,
    )


def _finish(figure: Figure, axes: Sequence[Axes], path: Path) -> None:
    for each in axes:
        plots.dress(each)
    plots.save(figure, path)
