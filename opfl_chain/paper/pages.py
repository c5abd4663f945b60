"""Markdown and plot of a result beside its JSON, and the page of all results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opfl_chain.paper.figures import FIGURES
from opfl_chain.paper.lab import NAMES
from opfl_chain.paper.published import DIFFERENCES
from opfl_chain.paper.results import Results
from opfl_chain.paper.tables import TABLES
from opfl_chain.system.files import write_atomically

QUICK = "**Quick run**: too few steps to conclude from.\n\n"

HEAD = """\
# Evaluation

Attack success against OPFL and the verifiers that the paper compares with, the cost of OPFL, and
its deterrence. `opfl evaluate page` generates this page from the results in [results](results),
which `opfl evaluate all --make --records DIR --out DIR` computes; `--rule proved` adds rows of
proved steps to stored tables. Replays are real: in MPC among three processes. Proved steps are not
replayed: gradients are compared with those that their advice implies, in the clear.
[BOUNDARY.md](BOUNDARY.md) evaluates the boundary itself.

A *verifier* accepts or rejects a submitted gradient. *Attack success* (ASR) is the share of
attacked steps whose gradient is accepted although it is not the honest one; an adaptive attack must
also turn a right prediction into a wrong one. All steps are audited here. The audit rate that is
needed depends on deposits (last section).
"""


def write_result(folder: Path, report: Mapping[str, Any]) -> str:
    """Write a result as Markdown and as a plot, and return the Markdown."""
    name = report["name"]
    text = section(report)
    write_atomically(folder / f"{name}.md", text + "\n")
    FIGURES[name](report, folder / f"{name}.png")
    return text


def write_page(results: Results, path: Path) -> None:
    """Write all results of a folder on one page. Raises if one is missing."""
    parts = []
    for name in NAMES:
        text = section(results.report(name))
        picture = results.folder / f"{name}.png"
        if picture.exists():
            shown = picture.resolve()
            parent = path.resolve().parent
            if shown.is_relative_to(parent):
                text += f"\n\n![{TABLES[name][0]}]({shown.relative_to(parent)})"
        parts.append(text)
    write_atomically(path, HEAD + "\n" + "\n\n".join(parts) + "\n")


def section(report: Mapping[str, Any]) -> str:
    name = report["name"]
    title, table = TABLES[name]
    quick = QUICK if report["settings"]["quick"] else ""
    return (
        f"## {title}\n\n`{report['command']}`, seed {report['settings']['seed']}.\n\n"
        f"{quick}{table(report)}\n\n**Beside the paper.** {DIFFERENCES[name]}"
    )
