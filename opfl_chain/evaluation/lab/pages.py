"""Files of a result beside its JSON, and the page of all results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opfl_chain.chain.files import write_atomically
from opfl_chain.evaluation.lab.differences import DIFFERENCES
from opfl_chain.evaluation.lab.figures import FIGURES
from opfl_chain.evaluation.lab.lab import NAMES
from opfl_chain.evaluation.lab.markdown import TABLES
from opfl_chain.evaluation.lab.results import Results

QUICK = "**Quick run**: too few steps to conclude from.\n\n"

HEAD = """\
# Evaluation

What attackers achieve against OPFL and the verifiers that the paper compares with, what it costs,
and whether it deters. Made by `opfl evaluate page` from the results in [results](results), which
`opfl evaluate all --make --records DIR --out DIR` computes. Replays are real ones, in MPC among
three processes. The boundary itself is evaluated in [BOUNDARY.md](BOUNDARY.md).

A *verifier* accepts or rejects a submitted gradient. *Attack success* (ASR) is the part of attacked
steps whose gradient is not the honest one and is accepted; for adaptive attacks it must also turn a
right prediction into a wrong one. All steps are audited here: how rarely that is needed is a matter
of deposits, in the last section.
"""


def write_result(folder: Path, report: Mapping[str, Any]) -> str:
    """Write a result as Markdown and as a picture, and return the Markdown."""
    name = report["name"]
    text = section(report)
    write_atomically(folder / f"{name}.md", text + "\n")
    FIGURES[name](report, folder / f"{name}.png")
    return text


def write_page(results: Results, path: Path) -> None:
    """All results of a folder on one page. Every one must be there."""
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
