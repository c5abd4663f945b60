"""`opfl stake`: audit rate against deposit."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from opfl_chain.commands.stake_plot import draw
from opfl_chain.protocol.economics import Deterrence, TradeOff, trade_off
from opfl_chain.protocol.errors import EconomicsError


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
            metavar="P", help="Probability allowed for an honest client to be rejected in the job."
        ),
    ] = 0.01,
    margin: Annotated[
        float,
        typer.Option(metavar="M", help="What cheating must lose, as a part of what it saves."),
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
    """An option that cannot be understood."""


def parse_rates(text: str) -> list[float]:
    """Read audit rates that are separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(
            f"--rates is {text!r}, it must be numbers with commas between them, such as 0.1,0.05"
        ) from None


def table_of(rows: Sequence[TradeOff], deterrence: Deterrence) -> Table:
    """Lay out the trade-off for the terminal."""
    table = Table(
        title="Audit rate and deposit",
        caption=(
            f"{deterrence.skipped_rounds} skipped rounds, false rejection"
            f" {deterrence.false_rejection:g}, margin {deterrence.margin:g};"
            " deposit and gain in units of the computation saved"
        ),
    )
    for heading in ("audit rate", "detection", "deposit", "ratio", "gain of cheating"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row.audit_rate:g}",
            f"{row.detection_probability:.4f}",
            f"{row.deposit:.2f}",
            f"{row.deposit_ratio:.2f}",
            f"{row.expected_gain:+.2f}",
        )
    return table


def report_of(rows: Sequence[TradeOff], deterrence: Deterrence) -> dict[str, Any]:
    """Return what the table shows, with units in the names."""
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
