"""How the pages look: plain, light or dark as the reader's system is."""

from typing import Final

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
