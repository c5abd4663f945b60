"""The picture of `opfl stake`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opfl_chain.protocol.economics import Deterrence, TradeOff

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DETECTION = "#1f6f8b"
_DEPOSIT = "#c0562f"
_QUIET = "#8a8f98"


def draw(rows: Sequence[TradeOff], deterrence: Deterrence, path: Path) -> None:
    """Draw detection probability and deposit over the audit rate, with the rows marked."""
    from matplotlib.figure import Figure  # slow to import, and needed only with --plot

    rates = _rates_to_draw(rows, deterrence)
    figure = Figure(figsize=(9.6, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_detection(left, rates, rows, deterrence)
    _draw_deposit(right, rates, rows, deterrence)
    for axes in (left, right):
        _dress(axes, rates)
    figure.savefig(path, format="png", dpi=160)


def _rates_to_draw(rows: Sequence[TradeOff], deterrence: Deterrence) -> list[float]:
    """Cover all rows, from where no deposit deters, evenly on a logarithmic axis."""
    marked = [row.audit_rate for row in rows]
    lowest = min(*marked, max(deterrence.lowest_audit_rate * 1.2, min(marked) / 3))
    highest = min(1.0, 3 * max(marked))
    steps = 400
    growth = (highest / lowest) ** (1 / steps)
    return [min(highest, lowest * growth**step) for step in range(steps + 1)]


def _draw_detection(
    axes: "Axes", rates: Sequence[float], rows: Sequence[TradeOff], deterrence: Deterrence
) -> None:
    detection = [deterrence.detection_probability(rate) for rate in rates]
    axes.plot(rates, detection, color=_DETECTION, linewidth=2)
    marked = [row.detection_probability for row in rows]
    _mark(axes, rows, marked, [f"{value:.3f}" for value in marked], _DETECTION, (6, -15))
    axes.set_ylim(0, 1.05)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_title(f"Probability of catching {deterrence.skipped_rounds} skipped rounds")


def _draw_deposit(
    axes: "Axes", rates: Sequence[float], rows: Sequence[TradeOff], deterrence: Deterrence
) -> None:
    deposits = [deterrence.required_deposit(rate) for rate in rates]
    axes.plot(rates, deposits, color=_DEPOSIT, linewidth=2)
    marked = [row.deposit for row in rows]
    _mark(axes, rows, marked, [f"{value:.2f}" for value in marked], _DEPOSIT, (6, 6))
    floor = deterrence.required_deposit(1)
    axes.axhline(floor, color=_QUIET, linewidth=1, linestyle=":")
    axes.annotate(
        f"{floor:.2f} if every round is audited",
        (rates[0], floor),
        (4, -12),
        textcoords="offset points",
        color=_QUIET,
        fontsize=9,
        bbox={"color": "white", "pad": 1},
    )
    axes.set_ylim(0, 1.25 * max(*marked, 2 * floor))
    axes.set_title("Deposit that deters, in units of computation saved")


def _mark(
    axes: "Axes",
    rows: Sequence[TradeOff],
    values: Sequence[float],
    labels: Sequence[str],
    color: str,
    label_offset: tuple[int, int],
) -> None:
    rates = [row.audit_rate for row in rows]
    axes.scatter(rates, values, s=55, color=color, edgecolors="white", clip_on=False, zorder=3)
    for rate, value, label in zip(rates, values, labels, strict=True):
        axes.annotate(label, (rate, value), label_offset, textcoords="offset points", color=color)


def _dress(axes: "Axes", rates: Sequence[float]) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.set_xlim(rates[0], rates[-1])
    steps = (1, 2, 5) if rates[-1] / rates[0] < 200 else (1,)
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(lambda rate, _: f"{rate:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel("audit rate p")
    axes.grid(axis="y", color="#e4e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.title.set_fontsize(11)
