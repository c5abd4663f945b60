"""Results as pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opfl_chain.evaluation.lab.markdown import unique
from opfl_chain.evaluation.lab.published import TITLES
from opfl_chain.evaluation.plots import dress, save

Report = Mapping[str, Any]
COLORS = {
    "none": "#8a8f98",
    "rofl-l2": "#6a8d3c",
    "rofl-linf": "#b08a1e",
    "eiffel": "#7d5ba6",
    "risefl": "#1f6f8b",
    "opfl-paper": "#e08a6a",
    "opfl-guided": "#c0562f",
}


def general_attacks(report: Report, path: Path) -> None:
    figure, axes = _figure(len(report["runs"]))
    for each, run in zip(axes, report["runs"], strict=True):
        attacks = run["attacks"]
        for place, name in enumerate(run["honest"]):
            heights = [100 * (attack["asr"][name] or 0.0) for attack in attacks]
            places = [index + 0.12 * (place - 3) for index in range(len(attacks))]
            each.bar(places, heights, 0.12, color=COLORS[name], label=TITLES[name])
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
    colors = [COLORS[row["verifier"]] for row in rows]
    axes.bar(names, [100 * row["accuracy"] for row in rows], color=colors)
    honest = 100 * report["all_honest"]["accuracy"]
    axes.axhline(honest, color="#444", linewidth=1, linestyle=":", label="all honest")
    axes.set_ylabel("accuracy at the end, %")
    axes.set_title("A client that drifts as far as its verifier allows")
    axes.tick_params(axis="x", rotation=30, labelsize=8)
    axes.legend(frameon=False, fontsize=8)
    _finish(figure, [axes], path)


def cost(report: Report, path: Path) -> None:
    figure, (axes,) = _figure(1)
    rows = report["rows"]
    kinds = ("computation", "audits", "commitment_gate", "share_transfer", "aggregation", "chain")
    colors = ("#8a8f98", "#c0562f", "#1f6f8b", "#6a8d3c", "#7d5ba6", "#b08a1e")
    left = [0.0] * len(rows)
    for kind, color in zip(kinds, colors, strict=True):
        widths = [row["parts"].get(kind, 0.0) for row in rows]
        axes.barh([row["method"] for row in rows], widths, left=left, color=color, label=kind)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_xscale("symlog", linthresh=100)
    axes.invert_yaxis()
    axes.set_xlabel("seconds for 5,000 gradients (linear up to 100)")
    axes.legend(frameon=False, fontsize=8)
    _finish(figure, [axes], path)


def deterrence(report: Report, path: Path) -> None:
    figure, (left, right) = _figure(2)
    rows = report["rows"]
    rates = [row["audit_rate"] for row in rows]
    left.plot(rates, [row["formula"] for row in rows], color="#8a8f98", label="formula")
    left.plot(rates, [row["detected"] for row in rows], "o", color="#c0562f", label="simulated")
    left.set_xscale("log")
    left.set_xlabel("audit rate")
    left.set_title("Probability that 100 cheating rounds are detected")
    left.legend(frameon=False, fontsize=8)
    profits = [row for row in report["profits"] if row["rejected_when_audited"] == 1.0]
    first = profits[0]["attack"] if profits else None
    for rate in (0.01, 0.05, 0.10):
        points = sorted(
            (row["deposit"], row["profit"])
            for row in profits
            if row["attack"] == first and row["audit_rate"] == rate
        )
        right.plot(*zip(*points, strict=True), marker="o", markersize=3, label=f"p = {rate:g}")
    right.axhline(0, color="#444", linewidth=1, linestyle=":")
    right.set_xlabel("deposit, in units of the computation saved")
    right.set_title("What cheating earns")
    right.legend(frameon=False, fontsize=8)
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
        axes.plot(betas, heights, marker="o", color=COLORS[name], label=TITLES[name])
    axes.set_xscale("log")
    axes.set_xlabel("perturbation, relative to the norm of the gradient")
    axes.set_ylabel("attacks that succeed, %")


def _figure(panels: int) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(7.2 if panels == 1 else 10.4, 4.2), layout="constrained")
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Of all panels, below them."""
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
        dress(each)
    save(figure, path)
