"""Pieces of HTML, with everything from outside escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NewType

from opfl_chain.trail.pages.style import STYLE

Html = NewType("Html", str)
"""Text that is safe to put on a page as it is."""

_SHOWN_ENDS: Final = 6
_WEI_DIGITS: Final = 18


def text(value: object) -> Html:
    return Html(escape(str(value)))


def join(parts: Iterable[Html], separator: str = "") -> Html:
    return Html(escape(separator).join(parts))


def page(title: str, body: Iterable[Html]) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def heading(words: str, level: int = 2) -> Html:
    return Html(f"<h{level}>{escape(words)}</h{level}>")


def note(words: Html) -> Html:
    return Html(f'<p class="note">{words}</p>')


def link(address: str, words: str) -> Html:
    return Html(f'<a href="{escape(address)}">{escape(words)}</a>')


def code(value: str, *, whole: bool = False) -> Html:
    """A hash or an address: its ends on the page, all of it when the pointer rests on it."""
    ends = 2 * _SHOWN_ENDS + 2
    cut = f"{value[: _SHOWN_ENDS + 2]}…{value[-_SHOWN_ENDS:]}"
    shown = value if whole or len(value) <= ends else cut
    return Html(f'<code title="{escape(value)}">{escape(shown)}</code>')


def hexed(data: bytes, *, whole: bool = False) -> Html:
    return code("0x" + data.hex(), whole=whole)


def chip(words: str, kind: str = "") -> Html:
    """A word in a coloured box; kinds are good, bad and warn."""
    return Html(f'<span class="chip {escape(kind)}">{escape(words)}</span>')


def table(columns: Sequence[str], rows: Sequence[Sequence[Html]]) -> Html:
    """A table. A column whose name begins with `>` has its cells at the right."""
    if not rows:
        return note(text("none"))
    sides = [' class="right"' if column.startswith(">") else "" for column in columns]
    head = "".join(
        f"<th{side}>{escape(column.removeprefix('>'))}</th>"
        for side, column in zip(sides, columns, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{side}>{cell}</td>" for side, cell in zip(sides, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return Html(
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n'
        "</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, Html]]) -> Html:
    """Names and values side by side."""
    inner = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in pairs)
    return Html(f"<dl>{inner}</dl>")


def folded(words: str, content: Html) -> Html:
    return Html(f"<details><summary>{escape(words)}</summary>{content}</details>")


def preformatted(words: str) -> Html:
    return Html(f"<pre>{escape(words)}</pre>")


def ether(wei: int) -> str:
    """An amount to the wei, without zeros at the end."""
    whole, rest = divmod(abs(wei), 10**_WEI_DIGITS)
    digits = f"{rest:0{_WEI_DIGITS}d}".rstrip("0")
    return f"{'-' if wei < 0 else ''}{whole:,}{'.' if digits else ''}{digits} ETH"


def money(wei: int) -> Html:
    return text(ether(wei)) if wei else Html('<span class="none">0</span>')
