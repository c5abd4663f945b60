"""HTML pages without scripts or external files, light or dark as the reader's system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NewType

from opfl_chain.render.text import ether

STYLE: Final = """\
:root {
  color-scheme: light dark;
  --ground: #fbfbf9; --raised: #ffffff; --ink: #1d2126; --soft: #626a73; --line: #e2e3df;
  --accent: #2456a6; --good: #1d7446; --good-ground: #e2f3e8;
  --bad: #a8271f; --bad-ground: #fbe5e2; --warn: #8a5a00; --warn-ground: #fbf0d6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --raised: #1b1f24; --ink: #e4e6e8; --soft: #98a1ab; --line: #2d333a;
    --accent: #86b2f5; --good: #7bd3a0; --good-ground: #163626;
    --bad: #f49a92; --bad-ground: #43201d; --warn: #e6bd68; --warn-ground: #3b2f14;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0.4rem 0 0.2rem; letter-spacing: -0.01em; }
h2 { font-size: 1.1rem; margin: 2.4rem 0 0.6rem; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
nav { display: flex; gap: 1.25rem; color: var(--soft); }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.86em; }
pre {
  background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 0.9rem;
  overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere;
}
.note, .none { color: var(--soft); }
.scroll {
  overflow-x: auto; background: var(--raised); border: 1px solid var(--line); border-radius: 8px;
}
table { border-collapse: collapse; width: 100%; }
th, td { padding: 0.45rem 0.8rem; text-align: left; vertical-align: top; }
th {
  color: var(--soft); font-weight: 500; font-size: 0.86em;
  border-bottom: 1px solid var(--line);
}
tbody tr + tr td { border-top: 1px solid var(--line); }
td { font-variant-numeric: tabular-nums; }
.right { text-align: right; }
td code { white-space: nowrap; }
dl {
  display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1.4rem; margin: 0.6rem 0;
}
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.chip {
  display: inline-block; padding: 0 0.55rem; border-radius: 999px; font-size: 0.86em;
  background: var(--line); white-space: nowrap;
}
.chip.good { color: var(--good); background: var(--good-ground); }
.chip.bad { color: var(--bad); background: var(--bad-ground); }
.chip.warn { color: var(--warn); background: var(--warn-ground); }
details { margin: 0.8rem 0; }
summary { cursor: pointer; color: var(--accent); }
details > .scroll, details > pre { margin-top: 0.6rem; }
"""


Html = NewType("Html", str)
"""Escaped text, safe to insert into a page."""

_SHOWN_ENDS: Final = 6


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
    """Format a hash or an address: its ends on the page, the whole as a tooltip."""
    ends = 2 * _SHOWN_ENDS + 2
    cut = f"{value[: _SHOWN_ENDS + 2]}…{value[-_SHOWN_ENDS:]}"
    shown = value if whole or len(value) <= ends else cut
    return Html(f'<code title="{escape(value)}">{escape(shown)}</code>')


def hexed(data: bytes, *, whole: bool = False) -> Html:
    return code("0x" + data.hex(), whole=whole)


def chip(words: str, kind: str = "") -> Html:
    """Format a word in a coloured box; kinds are good, bad and warn."""
    return Html(f'<span class="chip {escape(kind)}">{escape(words)}</span>')


def table(columns: Sequence[str], rows: Sequence[Sequence[Html]]) -> Html:
    """Format a table. A column whose name begins with `>` is aligned to the right."""
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
    """Format a list of names and values."""
    inner = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in pairs)
    return Html(f"<dl>{inner}</dl>")


def folded(words: str, content: Html) -> Html:
    return Html(f"<details><summary>{escape(words)}</summary>{content}</details>")


def preformatted(words: str) -> Html:
    return Html(f"<pre>{escape(words)}</pre>")


def money(wei: int) -> Html:
    return text(ether(wei)) if wei else Html('<span class="none">0</span>')
