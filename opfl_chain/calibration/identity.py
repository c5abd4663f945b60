"""Whose records a folder holds, so that those of two runs are never mixed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opfl_chain.calibration.errors import RecordsOfAnotherRun, RecordsOfUnknownRun
from opfl_chain.chain.files import write_atomically
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.examples import Dataset

FILE, RECORDS = "run.json", "records"


def claim_folder(folder: Path, policy: Policy, dataset: Dataset) -> None:
    """Mark a new folder as that of a run, or find that it already is."""
    ours: dict[str, Any] = {
        "policy_hash": "0x" + policy.hash.hex(),
        "dataset": dataset.name,
        "examples": len(dataset.train),
        "seed": policy.seeds.data,
    }
    path = folder / FILE
    if not path.exists() and not (folder / RECORDS).exists():
        write_atomically(path, json.dumps(ours, indent=2) + "\n")
        return
    theirs = _read(path)
    for field, value in ours.items():
        if theirs.get(field) != value:
            raise RecordsOfAnotherRun(folder, field.replace("_", " "), theirs.get(field), value)


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordsOfUnknownRun(path, str(error)) from error
    if not isinstance(fields, dict):
        raise RecordsOfUnknownRun(path, "it is not a JSON object")
    return fields
