"""`opfl stake`: audit rate against deposit."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from opfl_chain.protocol.economics import Deterrence, TradeOff, trade_off
from opfl_chain.protocol.errors import EconomicsError
from opfl_chain.render.plots import BLUE, GREY, ORANGE, dress, new_figure, save
from opfl_chain.render.text import terminal_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def stake(
    rates: Annotated[
        str,
        typer.Option(
            metavar="P,P,...", help="Audit rates: the probability that a round is audited."
        ),
    ] = "0.10,0.05,0.01",
    skipped_rounds: Annotated[
        int, typer.Option(metavar="K", help="Rounds that a cheating client skips.")
    ] = 100,
    false_rejection: Annotated[
        float,
        typer.Option(
            metavar="P", help="Allowed probability that an honest client is rejected in the job."
        ),
    ] = 0.01,
    margin: Annotated[
        float,
        typer.Option(
            metavar="M", help="Expected loss from cheating, as a fraction of the saved computation."
        ),
    ] = 0.1,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the trade-off.", dir_okay=False)
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the table as JSON.", dir_okay=False),
    ] = None,
) -> None:
    """Show which deposit deters cheating at which audit rate.

    Fewer audits cost less but catch less, so the deposit must grow. A client
    that skips K rounds saves one unit of computation and is caught with
    probability 1 - (1 - p)^K. The deposit, in the same unit, is such that
    cheating loses the margin on average. The defaults are those of the paper.
    """
    try:
        if plot is not None and plot.suffix.lower() != ".png":
            raise OptionError(f"--plot is {plot}, it must end in .png")
        deterrence = Deterrence(skipped_rounds, false_rejection, margin)
        rows = trade_off(parse_rates(rates), deterrence)
        Console().print(table_of(rows, deterrence))
        if json_file is not None:
            json_file.write_text(json.dumps(report_of(rows, deterrence), indent=2) + "\n")
        if plot is not None:
            draw(rows, deterrence, plot)
    except (OptionError, EconomicsError, OSError) as error:
        typer.echo(f"opfl stake: {error}", err=True)
        raise typer.Exit(2) from None


class OptionError(ValueError):
    """An invalid option."""


def parse_rates(text: str) -> list[float]:
    """Parse audit rates separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(
            f"--rates is {text!r}, it must be numbers separated by commas, such as 0.1,0.05"
        ) from None


def table_of(rows: Sequence[TradeOff], deterrence: Deterrence) -> Table:
    """Lay out the trade-off for the terminal."""
    columns = (">audit rate", ">detection", ">deposit", ">ratio", ">gain of cheating")
    rates = (
        (
            f"{row.audit_rate:g}",
            f"{row.detection_probability:.4f}",
            f"{row.deposit:.2f}",
            f"{row.deposit_ratio:.2f}",
            f"{row.expected_gain:+.2f}",
        )
        for row in rows
    )
    return terminal_table(
        columns,
        rates,
        title="Audit rate and deposit",
        caption=(
            f"{deterrence.skipped_rounds} skipped rounds, false rejection"
            f" {deterrence.false_rejection:g}, margin {deterrence.margin:g};"
            " deposit and gain in units of the computation saved"
        ),
    )


def report_of(rows: Sequence[TradeOff], deterrence: Deterrence) -> dict[str, Any]:
    """Return the content of the table, with units in the names."""
    return {
        "assumptions": {
            "skipped_rounds": deterrence.skipped_rounds,
            "false_rejection_probability": deterrence.false_rejection,
            "margin_fraction_of_saved_computation": deterrence.margin,
        },
        "trade_off": [
            {
                "audit_rate_per_round": row.audit_rate,
                "detection_probability": row.detection_probability,
                "deposit_units_of_saved_computation": row.deposit,
                "deposit_ratio_to_lowest": row.deposit_ratio,
                "gain_of_cheating_units_of_saved_computation": row.expected_gain,
            }
            for row in rows
        ],
    }


def draw(rows: Sequence[TradeOff], deterrence: Deterrence, path: Path) -> None:
    """Draw detection probability and deposit over the audit rate, with the rows marked."""
    rates = _rates_to_draw(rows, deterrence)
    figure, (left, right) = new_figure(9.6, 4.0, columns=2)
    _draw_detection(left, rates, rows, deterrence)
    _draw_deposit(right, rates, rows, deterrence)
    for axes in (left, right):
        dress(axes)
        _scale_rates(axes, rates)
    save(figure, path)


def _rates_to_draw(rows: Sequence[TradeOff], deterrence: Deterrence) -> list[float]:
    """Return rates evenly spaced on a logarithmic axis that covers all rows."""
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
    axes.plot(rates, detection, color=BLUE, linewidth=2)
    marked = [row.detection_probability for row in rows]
    _mark(axes, rows, marked, [f"{value:.3f}" for value in marked], BLUE, (6, -15))
    axes.set_ylim(0, 1.05)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_title(f"Probability of catching {deterrence.skipped_rounds} skipped rounds")


def _draw_deposit(
    axes: "Axes", rates: Sequence[float], rows: Sequence[TradeOff], deterrence: Deterrence
) -> None:
    deposits = [deterrence.required_deposit(rate) for rate in rates]
    axes.plot(rates, deposits, color=ORANGE, linewidth=2)
    marked = [row.deposit for row in rows]
    _mark(axes, rows, marked, [f"{value:.2f}" for value in marked], ORANGE, (6, 6))
    floor = deterrence.required_deposit(1)
    axes.axhline(floor, color=GREY, linewidth=1, linestyle=":")
    axes.annotate(
        f"{floor:.2f} if every round is audited",
        (rates[0], floor),
        (4, -12),
        textcoords="offset points",
        color=GREY,
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


def _scale_rates(axes: "Axes", rates: Sequence[float]) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.set_xlim(rates[0], rates[-1])
    steps = (1, 2, 5) if rates[-1] / rates[0] < 200 else (1,)
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(lambda rate, _: f"{rate:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel("audit rate p")
