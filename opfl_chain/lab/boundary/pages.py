"""The report of an evaluation as a Markdown page, with its plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opfl_chain.lab.boundary.evaluated import Evaluated
from opfl_chain.lab.boundary.plots import (
    draw_calibration_steps,
    draw_excess,
    draw_profiles,
    draw_trade_off,
)
from opfl_chain.render.text import markdown_table
from opfl_chain.system.files import write_atomically

Row = dict[str, Any]

NAMES = ("rule", "model", "dataset", "batch_size")
COUNTS = ("honest_steps", "rejected", "rejected_by_cause", "frr", "frr_upper95")

TABLES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "rows",
        "Each rule on each run",
        (*NAMES, "alpha", "calibration_steps", *COUNTS),
    ),
    (
        "rows",
        "Smallest perturbation rejected in 100 % and in 50 % of the steps, relative to the norm",
        (
            *NAMES,
            "floor_steps",
            "seen_dense_1e-3",
            "seen_top1pct_1e-2",
            *(
                f"floor_{kind}_{percent}"
                for kind in ("dense", "along", "top10pct", "top1pct", "single")
                for percent in (100, 50)
            ),
        ),
    ),
    (
        "runs",
        "How far the runs were trained",
        ("model", "dataset", "batch_size", "training_steps", "recorded_steps", "test_accuracy"),
    ),
    ("totals", "All runs together", ("rule", *COUNTS)),
    (
        "calibration_steps",
        "Number of calibration steps",
        (*NAMES, "calibration_steps", *COUNTS),
    ),
    (
        "across_datasets",
        "Calibrated on one data set, judged on another",
        (*NAMES, "calibrated_on", *COUNTS),
    ),
    (
        "across_stages",
        "Stages of training",
        (*NAMES, "stage", "first_step", "last_step", *COUNTS),
    ),
    (
        "trade_off",
        "Safety factors",
        (
            *NAMES,
            "alpha",
            "honest_steps",
            "rejected",
            "frr_upper95",
            "floor_dense_100",
            "floor_dense_99",
            "floor_top1pct_100",
            "floor_top1pct_99",
        ),
    ),
    (
        "environments",
        "Where the client trained",
        (
            *NAMES,
            "environment",
            "steps",
            "relative_difference_median",
            "relative_difference_max",
            "recorded_replay_honest_steps",
            "recorded_replay_rejected",
            "needs_another_replay",
            "another_replay_honest_steps",
            "another_replay_rejected",
        ),
    ),
    (
        "mask_attack",
        "A cheat that chooses its masks within the tolerance",
        (
            *NAMES,
            "mask_tolerance_quanta",
            "honest_wrong_side_max_quanta",
            "steps",
            "steps_without_free_units",
            "free_units_mean",
            "free_units_max",
            "relative_change_chosen_mean",
            "relative_change_chosen_p99",
            "relative_change_chosen_p100",
        ),
    ),
)


def markdown_of(report: dict[str, Any]) -> str:
    """Return all tables that have rows."""
    parts = [
        f"## {title}\n\n{table(report[key], columns)}"
        for key, title, columns in TABLES
        if report[key]
    ]
    return "# Boundaries, evaluated\n\n" + "\n".join(parts)


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return the table of some columns; those of numbers are right-aligned."""
    names = [
        (">" if isinstance(rows[0][column], int | float) else "") + column.replace("_", " ")
        for column in columns
    ]
    cells = ([shown(column, row[column]) for column in columns] for row in rows)
    return markdown_table(names, cells, tight=True) + "\n"


def shown(column: str, value: Any) -> str:
    if value is None:
        return "> 1" if column.startswith("floor_") else ""
    if isinstance(value, dict):
        return ", ".join(f"{cause} {count:,}" for cause, count in value.items())
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_pages(folder: Path, report: dict[str, Any], evaluated: Sequence[Evaluated]) -> None:
    """Write the tables as Markdown, and the plots."""
    write_atomically(folder / "boundary.md", markdown_of(report))
    if report["calibration_steps"]:
        draw_calibration_steps(report["calibration_steps"], folder / "calibration-steps.png")
    for each in evaluated:
        draw_profiles(each, folder / f"profiles-{each.records.rule.name}-{each.records.run}.png")
    if report["trade_off"]:
        draw_trade_off(report["trade_off"], folder / "trade-off.png")
    draw_excess(evaluated, folder / "excess.png")
