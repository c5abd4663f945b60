"""The style of all plots: colours, axes, file format.

Importing this module does not load matplotlib, which is slow; making a figure does. Figures have no
window: they are drawn into PNG files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BLUE: Final = "#1f6f8b"
ORANGE: Final = "#c0562f"
GREEN: Final = "#6a8d3c"
PURPLE: Final = "#7d5ba6"
OCHRE: Final = "#b08a1e"
SALMON: Final = "#e08a6a"
RED: Final = "#b3261e"
GREY: Final = "#8a8f98"
INK: Final = "#444"
_GRID: Final = "#e4e6ea"
SERIES: Final = (BLUE, ORANGE, GREEN, PURPLE)
"""Colours of lines that have no meaning of their own."""
_DPI: Final = 140


def new_figure(
    width: float, height: float, columns: int = 1, rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure of a size in inches, and its axes, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def dress(axes: Axes) -> None:
    """Give axes the common style: faint horizontal lines, no frame."""
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.title.set_fontsize(11)


def add_legend(axes: Axes, size: int = 8) -> None:
    axes.legend(frameon=False, fontsize=size)


def save(figure: Figure, path: Path) -> None:
    """Write a PNG file; an interrupted write leaves no half of it."""
    partial = path.with_suffix(".partial")
    try:
        figure.savefig(partial, format="png", dpi=_DPI)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
