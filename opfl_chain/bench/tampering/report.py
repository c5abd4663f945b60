"""The report of the benchmark, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.table import Table

from opfl_chain.bench.tampering.daemons import COUNTED as COUNTED_OF_DAEMONS
from opfl_chain.bench.tampering.runs import COUNTED
from opfl_chain.render.text import markdown_table, terminal_table

_COLUMNS: Final = (
    "client",
    "proof",
    ">runs",
    ">wrong verdicts",
    ">undecided",
    ">settled by a standby",
    ">liar named",
    ">misnamed",
    ">unnamed",
    ">wrong verdicts, unconfirmed",
    ">wrong verdicts, uncompared",
    ">leaks",
    ">leaks, uncompared",
)


def _rows(report: dict[str, Any]) -> list[list[str]]:
    rows = [*report["clients"], {**report, "client": "all", "proof": ""}]
    return [
        [
            row["client"],
            row["proof"],
            *(f"{row[name]:,}" for name in COUNTED[:7]),
            f"{row['unconfirmed_wrong_verdicts']} of {row['uncompared_attacks']}",
            f"{row['uncompared_wrong_verdicts']} of {row['uncompared_attacks']}",
            f"{row['leaks']} of {row['guessed_ways']}",
            f"{row['uncompared_leaks']} of {row['uncompared_guesses']}",
        ]
        for row in rows
    ]


def tamper_table(report: dict[str, Any]) -> Table:
    """Format the report for a terminal."""
    opened = report["opened_bits_per_contribution"]
    caption = f"opened bits of a contribution: {opened}"
    return terminal_table(_COLUMNS, _rows(report), title=report["model"], caption=caption)


def tamper_markdown(report: dict[str, Any]) -> str:
    """Format the report for a page."""
    parts = [markdown_table(list(_COLUMNS), _rows(report)), _leak_table(report["leak"])]
    if "daemons" in report:
        parts.append(_daemons_table(report["daemons"]))
    return "\n\n".join(parts)


def _leak_table(rows: Sequence[dict[str, Any]]) -> str:
    columns = ["switched off", ">secret labels that were told"]
    return markdown_table(
        columns, [[row["off"], f"{row['told']} of {row['secrets']}"] for row in rows]
    )


def _daemons_table(rows: Sequence[dict[str, Any]]) -> str:
    columns = ["member", ">audits", ">wrong verdicts", ">undecided", ">faults paid", ">misnamed"]
    return markdown_table(
        columns,
        [
            [each["cheat"], *(f"{each[name]:,}" for name in COUNTED_OF_DAEMONS)]
            if "runs" in each
            else [each["cheat"], "stuck", *[""] * 4]
            for each in rows
        ],
    )
