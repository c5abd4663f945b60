"""A folder of results: one JSON file for each table, and what an interrupted one has so far.

A folder is of one set of settings. What is there is not computed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opfl_chain.chain.files import write_atomically
from opfl_chain.evaluation.errors import (
    ResultDamaged,
    ResultMissing,
    ResultsOfAnotherRun,
    ResultsOfUnknownRun,
)
from opfl_chain.evaluation.lab.settings import LabSettings

CLAIM = "lab.json"
Report = dict[str, Any]


class Results:
    """The results of one set of settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def claim(self, settings: LabSettings, names: tuple[str, ...]) -> None:
        """Mark a new folder as that of these settings, or find that it already is."""
        path, ours = self.folder / CLAIM, settings.report
        if not path.exists():
            if strays := [name for name in names if self._path(name).exists()]:
                raise ResultsOfUnknownRun(self.folder, f"{strays[0]}.json", CLAIM)
            write_atomically(path, json.dumps(ours, indent=2) + "\n")
            return
        theirs = _read(path)
        for name, value in ours.items():
            if theirs.get(name) != value:
                raise ResultsOfAnotherRun(self.folder, name, theirs.get(name), value)

    def has(self, name: str) -> bool:
        return self._path(name).exists()

    def report(self, name: str) -> Report:
        if not self.has(name):
            raise ResultMissing(self.folder, name)
        found = _read(self._path(name))
        if found.get("name") != name:
            raise ResultDamaged(self._path(name), f"it is a report of {found.get('name')!r}")
        return found

    def finish(self, name: str, report: Report) -> None:
        """Keep the result, and drop what led to it."""
        write_atomically(self._path(name), json.dumps(report, indent=1) + "\n")
        self._partial(name).unlink(missing_ok=True)

    def cells(self, name: str) -> Cells:
        return Cells(self._partial(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _partial(self, name: str) -> Path:
        return self.folder / f"{name}.partial.json"


class Cells:
    """The parts of a table, each kept as soon as it is there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, Any] = _read(path) if path.exists() else {}

    def of(self, key: str, compute: Callable[[], Any]) -> Any:
        """What was computed for this key before, or now."""
        if key not in self._kept:
            self._kept[key] = compute()
            write_atomically(self._path, json.dumps(self._kept) + "\n")
        return self._kept[key]

    def __contains__(self, key: str) -> bool:
        return key in self._kept


def _read(path: Path) -> Report:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultDamaged(path, str(error)) from error
    if not isinstance(found, dict):
        raise ResultDamaged(path, "it is not a JSON object")
    return found
