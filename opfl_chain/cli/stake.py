"""`opfl stake`: audit rate against deposit."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from opfl_chain.protocol.economics import BestResponse
from opfl_chain.protocol.errors import EconomicsError
from opfl_chain.render.plots import GREY, ORANGE, add_legend, dress, new_figure, save
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
    saved_cost: Annotated[
        float,
        typer.Option(
            metavar="C", help="Cost of a contribution, which a cheat saves; unit of all amounts."
        ),
    ] = 1.0,
    outside_gain: Annotated[
        float, typer.Option(metavar="G", help="Payment by a third party for a cheat.")
    ] = 0.0,
    pay: Annotated[float, typer.Option(metavar="U", help="Pay of an accepted contribution.")] = 0.0,
    honest_rejection: Annotated[
        float,
        typer.Option(metavar="Q", help="Probability that an audit rejects an honest contribution."),
    ] = 0.0,
    cheapest_penalty: Annotated[
        float,
        typer.Option(
            metavar="R",
            help="Smallest part of the deposit that an audited cheat can choose to lose.",
        ),
    ] = 1.0,
    margin: Annotated[
        float, typer.Option(metavar="M", help="Expected loss from cheating, as a part of its gain.")
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

    Fewer audits cost less but catch less, so the deposit must grow. After the
    seed of a round an audited cheat chooses what is cheapest for it; in this
    protocol that is the whole deposit, whatever it does. The deposit is such
    that one cheating contribution loses the margin on average. Contributions
    are audited independently, so what does not pay once never pays.
    """
    try:
        if plot is not None and plot.suffix.lower() != ".png":
            raise OptionError(f"--plot is {plot}, it must end in .png")
        response = BestResponse(
            saved_cost, outside_gain, pay, honest_rejection, cheapest_penalty, margin
        )
        rows = rows_of(parse_rates(rates), response)
        Console().print(table_of(rows, response))
        if json_file is not None:
            json_file.write_text(json.dumps(report_of(rows, response), indent=2) + "\n")
        if plot is not None:
            draw(rows, response, plot)
    except (OptionError, EconomicsError, OSError) as error:
        typer.echo(f"opfl stake: {error}", err=True)
        raise typer.Exit(2) from None


@dataclass(frozen=True)
class Row:
    """One audit rate, and the deposit that deters at it."""

    audit_rate: float
    deposit: float
    gain: float
    """Gain of one cheating contribution over an honest one."""


def rows_of(rates: Sequence[float], response: BestResponse) -> list[Row]:
    """Return one row for each audit rate, in the order given."""
    deposits = [response.required_deposit(rate) for rate in rates]
    return [
        Row(rate, deposit, response.expected_gain(rate, deposit))
        for rate, deposit in zip(rates, deposits, strict=True)
    ]


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


def table_of(rows: Sequence[Row], response: BestResponse) -> Table:
    """Lay out the trade-off for the terminal."""
    lowest = min(row.deposit for row in rows) or 1.0
    return terminal_table(
        (">audit rate", ">deposit", ">ratio", ">gain of cheating"),
        (
            (
                f"{row.audit_rate:g}",
                f"{row.deposit:.2f}",
                f"{row.deposit / lowest:.2f}",
                f"{row.gain:+.2f}",
            )
            for row in rows
        ),
        title="Audit rate and deposit",
        caption=(
            f"a contribution costs {response.saved_cost:g} and pays {response.pay:g}, a cheat is"
            f" worth {response.outside_gain:g} outside and loses {response.cheapest_penalty:g} of"
            f" the deposit when audited; honest rejection {response.honest_rejection:g}, margin"
            f" {response.margin:g}"
        ),
    )


def report_of(rows: Sequence[Row], response: BestResponse) -> dict[str, Any]:
    """Return the content of the table, with units in the names."""
    return {
        "assumptions": {
            "saved_cost_per_contribution": response.saved_cost,
            "outside_gain_per_contribution": response.outside_gain,
            "pay_per_contribution": response.pay,
            "honest_rejection_probability": response.honest_rejection,
            "cheapest_penalty_part_of_deposit": response.cheapest_penalty,
            "margin_part_of_gain": response.margin,
        },
        "trade_off": [
            {
                "audit_rate_per_contribution": row.audit_rate,
                "deposit_units_of_cost": row.deposit,
                "gain_of_cheating_per_contribution": row.gain,
            }
            for row in rows
        ],
    }


def draw(rows: Sequence[Row], response: BestResponse, path: Path) -> None:
    """Draw the deposit over the audit rate, and what cheating gains over the deposit."""
    rates = _rates_to_draw(rows)
    figure, (left, right) = new_figure(9.6, 4.0, columns=2)
    left.plot(rates, [response.required_deposit(rate) for rate in rates], color=ORANGE, linewidth=2)
    deposits = [row.deposit for row in rows]
    _mark(left, rows, deposits, [f"{value:.2f}" for value in deposits], ORANGE, (6, 6))
    left.set_ylim(0, 1.25 * max(*deposits, response.required_deposit(rates[0]), 1.0))
    left.set_title("Deposit that deters, in units of cost")
    _scale_rates(left, rates)
    highest = 1.2 * max(*deposits, 1.0)
    for row in rows:
        gains = [response.expected_gain(row.audit_rate, each) for each in (0.0, highest)]
        right.plot((0.0, highest), gains, linewidth=2, label=f"p = {row.audit_rate:g}")
    right.axhline(0, color=GREY, linewidth=1, linestyle=":")
    right.set_xlabel("deposit")
    right.set_title("Gain of one cheating contribution")
    add_legend(right)
    for axes in (left, right):
        dress(axes)
    save(figure, path)


def _rates_to_draw(rows: Sequence[Row]) -> list[float]:
    """Return rates evenly spaced on a logarithmic axis that covers all rows."""
    marked = [row.audit_rate for row in rows]
    lowest, highest = min(marked) / 1.5, min(1.0, 3 * max(marked))
    steps = 400
    growth = (highest / lowest) ** (1 / steps)
    return [min(highest, lowest * growth**step) for step in range(steps + 1)]


def _mark(
    axes: "Axes",
    rows: Sequence[Row],
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
