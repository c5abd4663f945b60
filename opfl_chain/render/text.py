"""Amounts in words, and tables in Markdown and for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.table import Table

from opfl_chain.protocol.economics import ETHER
from opfl_chain.system.files import write_atomically

_WEI_DIGITS: Final = 18


def ether(wei: int) -> str:
    """Format an amount to the wei, without trailing zeros: `0.25 ETH`."""
    whole, rest = divmod(abs(wei), ETHER)
    digits = f"{rest:0{_WEI_DIGITS}d}".rstrip("0")
    return f"{'-' if wei < 0 else ''}{whole:,}{'.' if digits else ''}{digits} ETH"


def rounded_ether(wei: int) -> str:
    """Format an amount to four digits and without its unit, for a column of amounts in ETH."""
    return f"{wei / ETHER:,.4g}"


def megabytes(size: int, digits: int = 1) -> str:
    """Format a number of bytes without its unit, for a column of sizes in MB."""
    return f"{size / 1e6:,.{digits}f}"


def bytes_in_words(size: int, digits: int = 1) -> str:
    """Format a number of bytes: `98.8 MB`, `1.25 GB`."""
    return f"{size / 1e9:,.2f} GB" if size >= 10**9 else f"{megabytes(size, digits)} MB"


def seconds_in_words(seconds: float, digits: int = 1) -> str:
    return f"{seconds:.{digits}f} s"


def milliseconds_in_words(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms"


def percent(part: float | None, digits: int = 1) -> str:
    """Format a part of 1 without the sign, for a column in %; empty for None."""
    return "" if part is None else f"{100 * part:.{digits}f}"


def gas_in_words(gas: float) -> str:
    """Format gas; shares of a transaction, which are small, to a tenth."""
    return f"{gas:,.0f}" if gas >= 100 else f"{gas:.1f}"


def count_or_blank(number: int) -> str:
    """Format a count, empty for 0: a table shows what there is."""
    return str(number) if number else ""


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, tight: bool = False
) -> str:
    """Return a table. A column whose name begins with `>` is right-aligned.

    `tight` writes the rules below the names without blanks, as in docs/GAS.md.
    """
    names = [column.removeprefix(">") for column in columns]
    rules = ["--:" if column.startswith(">") else "---" for column in columns]
    rule = f"|{'|'.join(rules)}|" if tight else _line(rules)
    return "\n".join([_line(names), rule, *map(_line, rows)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def replace_section(page: Path, name: str, text: str) -> None:
    """Replace the text between the two comments that mark a section of a page."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    content = page.read_text()
    if content.count(begin) != 1 or content.count(end) != 1:
        raise OSError(f"{page} must contain {begin} and {end} exactly once")
    before, _, rest = content.partition(begin)
    _, _, after = rest.partition(end)
    write_atomically(page, f"{before}{begin}\n{text}\n{end}{after}")


def terminal_table(
    columns: Iterable[str],
    rows: Iterable[Sequence[str]] = (),
    *,
    title: str | None = None,
    caption: str | None = None,
) -> Table:
    """Return a table with a frame. A column whose name begins with `>` is right-aligned."""
    return _filled(Table(title=title, caption=caption), columns, rows)


def light_table(
    columns: Iterable[str],
    rows: Iterable[Sequence[str]] = (),
    *,
    title: str | None = None,
    dense: bool = False,
    edge: bool = True,
) -> Table:
    """Return a table without a frame, for output among other lines.

    `dense` saves columns; without an `edge` it has no empty lines around it.
    """
    padding = (0, 1, 0, 0) if dense else (0, 1, 0, 1)
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=padding, show_edge=edge
    )
    return _filled(table, columns, rows)


def _filled(table: Table, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    for column in columns:
        right = column.startswith(">")
        table.add_column(column.removeprefix(">"), justify="right" if right else "left")
    for row in rows:
        table.add_row(*row)
    return table
