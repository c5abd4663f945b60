"""Writes a trail as JSON, CSV and pages. All files follow from the events alone."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Final

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.chain.files import write_atomically
from opfl_chain.trail.canonical import readable, trail_document
from opfl_chain.trail.history import History
from opfl_chain.trail.pages.index_page import index_page
from opfl_chain.trail.pages.names import round_file
from opfl_chain.trail.pages.round_page import round_page
from opfl_chain.trail.record import Trail

TRAIL_JSON: Final = "trail.json"
TRAIL_CSV: Final = "trail.csv"
INDEX_PAGE: Final = "index.html"
_COLUMNS = ("block", "log_index", "transaction", "contract", "event", "round", "who", "arguments")


def write_export(trail: Trail, folder: Path) -> list[Path]:
    """Write all files into a folder, which is made if need be, and return their paths."""
    files = export_files(trail)
    for name, content in files.items():
        write_atomically(folder / name, content)
    return [folder / name for name in files]


def export_files(trail: Trail) -> dict[str, str]:
    """The files of an export, by name."""
    document = trail_document(trail)
    files = {
        TRAIL_JSON: json.dumps(document, indent=1) + "\n",
        TRAIL_CSV: _csv(trail),
    }
    created = next(trail.of(JobCreated), None)
    if created is not None:
        history = History(trail, created)
        files[INDEX_PAGE] = index_page(history, document["digest"])
        for number, round_ in history.rounds.items():
            files[round_file(number)] = round_page(history, round_)
    return files


def _csv(trail: Trail) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for entry in trail.entries:
        writer.writerow(
            (
                entry.block,
                entry.log_index,
                entry.transaction,
                entry.contract,
                entry.name,
                "" if entry.round is None else entry.round,
                entry.who or "",
                json.dumps(readable(entry.event), separators=(",", ":")),
            )
        )
    return lines.getvalue()
