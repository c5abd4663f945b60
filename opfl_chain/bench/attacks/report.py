"""The rows of the benchmark, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.table import Table

from opfl_chain.bench.attacks.rows import WORKS
from opfl_chain.protocol.economics import ETHER
from opfl_chain.render.text import markdown_table, terminal_table

_COLUMNS: Final = (
    "attack",
    "who",
    ">honest clients lost",
    ">honest members lost",
    ">attacker lost",
    "cheat charged",
    ">secret bits",
    ">rounds final",
    "outcome",
)


def attacks_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format the rows for a terminal; amounts in ether."""
    working = sum(row["works"] for row in rows)
    failed = sum(not row["failures"] for row in rows if not row["works"])
    caption = f"{failed} of {len(rows) - working} attacks failed; amounts in ether"
    if working:
        caption = f"{caption}; {working} others: expected to work"
    return terminal_table(_COLUMNS, map(_cells, rows), caption=caption)


def attacks_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format the rows for a page; amounts in ether."""
    return markdown_table(list(_COLUMNS), [list(_cells(row)) for row in rows])


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    charged = {True: "yes", False: "no", None: ""}[row["cheat_charged"]]
    lost = ("honest_clients_lost_wei", "honest_members_lost_wei", "attacker_lost_wei")
    return (
        row["attack"],
        row["actors"],
        *(f"{row[name] / ETHER:g}" for name in lost),
        charged,
        f"{row['secret_bits_leaked']:,}",
        f"{row['rounds_final']} of {row['rounds']}",
        "; ".join([*row["failures"], *_known(row), row["outcome"]]),
    )


def _known(row: Mapping[str, Any]) -> list[str]:
    """Say what an attack achieved that is known to work."""
    return [f"{WORKS}: {', '.join(row['harm'])}"] if row["works"] and row["harm"] else []
