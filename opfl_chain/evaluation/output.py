"""Files of an evaluation beside its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opfl_chain.chain.files import write_atomically
from opfl_chain.evaluation.evaluated import Evaluated
from opfl_chain.evaluation.markdown import markdown_of
from opfl_chain.evaluation.plots import draw_calibration_steps, draw_excess, draw_trade_off
from opfl_chain.evaluation.profile_plot import draw_profiles
from opfl_chain.evaluation.records import GUIDED


def write_pages(folder: Path, report: dict[str, Any], evaluated: Sequence[Evaluated]) -> None:
    """Tables as Markdown, and pictures."""
    write_atomically(folder / "boundary.md", markdown_of(report))
    if report["calibration_steps"]:
        draw_calibration_steps(report["calibration_steps"], folder / "calibration-steps.png")
    for each in evaluated:
        draw_profiles(each, folder / f"profiles-{each.records.rule}-{each.records.run}.png")
    if guided := [each for each in evaluated if each.records.rule == GUIDED]:
        draw_trade_off(report["trade_off"], folder / "trade-off.png")
        draw_excess(guided, folder / "excess.png")
