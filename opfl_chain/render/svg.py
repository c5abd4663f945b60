"""Charts as inline SVG, in the colours of the page: light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from opfl_chain.render.html import Html

WIDTH, HEIGHT = 640, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 14, 34
_LABEL_GAP = 15
_BAR_HEIGHT = 24
_BARS_WIDTH = 420
"""Narrower than other charts: three fit beside each other."""

STYLE: Final = """\
.chart { width: 100%; height: auto; max-width: 52rem; display: block; }
.chart text { fill: var(--soft); font: 13px system-ui, sans-serif; }
.chart .axis { stroke: var(--line); }
.chart .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
.chart .accent { stroke: var(--accent); } .chart .accent-fill { fill: var(--accent); }
.chart .good { stroke: var(--good); } .chart .good-fill { fill: var(--good); }
.chart .bad { stroke: var(--bad); } .chart .bad-fill { fill: var(--bad); }
.chart .warn { stroke: var(--warn); } .chart .warn-fill { fill: var(--warn); }
.chart text.good-fill { fill: var(--good); } .chart text.bad-fill { fill: var(--bad); }
.chart text.warn-fill { fill: var(--warn); } .chart text.accent-fill { fill: var(--accent); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; }
.charts.small { grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); }
.panel {
  background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 1rem;
}
.panel h3 { margin: 0 0 0.6rem; font-size: 0.95rem; }
"""

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """`kind` is one of the page's colours: accent, good, bad, warn."""

    label: str
    points: Sequence[Point]
    kind: str = "accent"
    dots: bool = False


def line_chart(lines: Sequence[Line], *, across: float, up: float, unit: str, below: str) -> Html:
    """Draw lines over 0 to `across` and 0 to `up`; labels stand at the ends of the lines."""
    plot_width, plot_height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def place(point: Point) -> Point:
        x, y = point
        return (
            _LEFT + plot_width * x / max(across, 1e-9),
            _TOP + plot_height * (1 - y / max(up, 1e-9)),
        )

    parts = []
    for step in range(5):
        value = up * step / 4
        _, y = place((0, value))
        parts.append(
            f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{value:g}{escape(unit)}</text>"
        )
    for tick in _ticks(across):
        x, y = place((tick, 0))
        parts.append(f'<text x="{x:.1f}" y="{y + 17:.1f}" text-anchor="middle">{tick:g}</text>')
    middle = _LEFT + plot_width / 2
    parts.append(
        f'<text x="{middle:.1f}" y="{HEIGHT - 3}" text-anchor="middle">{escape(below)}</text>'
    )
    ends = _spread([place(line.points[-1])[1] for line in lines])
    for line, end in zip(lines, ends, strict=True):
        placed = [place(point) for point in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline class="line {line.kind}" points="{path}"/>')
        if line.dots:
            parts += [
                f'<circle class="{line.kind}-fill" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>'
                for x, y in placed
            ]
        parts.append(
            f'<text class="{line.kind}-fill" x="{placed[-1][0] + 8:.1f}" y="{end + 4:.1f}">'
            f"{escape(line.label)}</text>"
        )
    return _svg("".join(parts), WIDTH, HEIGHT)


def bar_chart(values: Mapping[str, float], shown: Mapping[str, str]) -> Html:
    """Draw one bar for each name, with its `shown` text at the end."""
    most = max(values.values(), default=0) or 1
    left, longest = 84, _BARS_WIDTH - 84 - 110
    parts = []
    for place, (name, value) in enumerate(values.items()):
        y, length = place * _BAR_HEIGHT + 4, max(longest * value / most, 1.5)
        parts.append(
            f'<text x="{left - 10}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="accent-fill" x="{left}" y="{y}" width="{length:.1f}" height="15"/>'
            f'<text x="{left + length + 8:.1f}" y="{y + 12}">{escape(shown[name])}</text>'
        )
    return _svg("".join(parts), _BARS_WIDTH, _BAR_HEIGHT * len(values) + 4)


def panel(title: str, content: Html) -> Html:
    return Html(f'<div class="panel"><h3>{escape(title)}</h3>{content}</div>')


def _svg(inside: str, width: int, height: int) -> Html:
    return Html(f'<svg class="chart" viewBox="0 0 {width} {height}" role="img">{inside}</svg>')


def _ticks(across: float) -> list[float]:
    """About ten whole numbers."""
    step = max(1, round(across / 10))
    return [float(tick) for tick in range(0, int(across) + 1, step)]


def _spread(heights: Sequence[float]) -> list[float]:
    """Move overlapping labels down, and up again from the axis."""
    moved = list(heights)
    order = sorted(range(len(heights)), key=lambda each: heights[each])
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + _LABEL_GAP)
    floor = float(HEIGHT - _BOTTOM)
    for place in reversed(order):
        moved[place] = min(moved[place], floor)
        floor = moved[place] - _LABEL_GAP
    return moved
