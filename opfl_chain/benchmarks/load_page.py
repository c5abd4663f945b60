"""What `opfl bench load` measured, for a terminal and for a page."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table

from opfl_chain.benchmarks.page import markdown_table

_WIDTH: Final = 118
_MEANING: Final = {
    "commit": "from the first commitment that a client sends to the batch on chain",
    "beacon": "from the end of the commit phase to the seed on chain",
    "deliver": "from the seed to the last receipt that a client holds",
    "judge": "from the last delivery to the decided verdict",
    "sum": "from the verdict to the next model at two members",
    "finalise": "from there to the end of the round on chain",
}


def load_table(report: Mapping[str, Any]) -> Table:
    table = Table(
        title=f"{report['clients_held_per_round']} of {report['clients']} clients in a round",
        caption=_gas(report),
    )
    table.add_column("phase")
    table.add_column("seconds", justify="right")
    table.add_column("ms per client", justify="right")
    for row in _rows(report):
        table.add_row(*row[:3])
    return table


def load_markdown(report: Mapping[str, Any]) -> str:
    columns = ["phase", ">seconds", ">ms per client", "measured"]
    sizes = report["bytes_per_member_and_round"]
    received = ", ".join(f"{size / 1e6:.1f} MB" for size in sizes)
    cpu = ", ".join(f"{seconds:.0f} s" for seconds in report["cpu_seconds_per_member"])
    text = (
        f"{report['clients_held_per_round']} of {report['clients']} clients were in each of"
        f" {report['rounds']} rounds. {_gas(report)} In a round the members received {received};"
        f" they used {cpu} of CPU time in all, most of it to load their replays when they start."
    )
    return f"{textwrap.fill(text, _WIDTH)}\n\n{markdown_table(columns, _rows(report))}"


def _rows(report: Mapping[str, Any]) -> list[list[str]]:
    phases = report["seconds_per_phase"]
    rows = [
        [name, f"{seconds:.2f}", _each(report, seconds), _MEANING[name]]
        for name, seconds in phases.items()
    ]
    total = report["seconds_per_round"]
    return [*rows, ["all", f"{total:.2f}", _each(report, total), ""]]


def _each(report: Mapping[str, Any], seconds: float) -> str:
    return f"{1000 * seconds / report['clients']:.1f}"


def _gas(report: Mapping[str, Any]) -> str:
    return (
        f"A round after the first cost {report['gas_per_client_and_round']:,.0f} gas for each"
        f" client, the committee's included; enrolling cost {report['gas_to_enrol_per_client']:,}"
        " once."
    )
