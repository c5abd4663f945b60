"""Measured tables inside a page that is otherwise written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opfl_chain.chain.files import write_atomically


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table. A column whose name begins with `>` has its cells at the right."""
    names = [column.removeprefix(">") for column in columns]
    rules = ["--:" if column.startswith(">") else "---" for column in columns]
    lines = [names, rules, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replace_section(page: Path, name: str, text: str) -> None:
    """Put text between the two comments that mark a section of a page."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    content = page.read_text()
    if content.count(begin) != 1 or content.count(end) != 1:
        raise OSError(f"{page} has no section between {begin} and {end}")
    before, _, rest = content.partition(begin)
    _, _, after = rest.partition(end)
    write_atomically(page, f"{before}{begin}\n{text}\n{end}{after}")
