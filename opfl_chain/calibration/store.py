"""Honest steps and their replays on disk, so that rules can be compared without replaying.

A folder holds one training run: `steps/` as they were trained, and a folder of replays for each
policy. A file is complete or not there, so whatever is missing can be made later.
"""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from opfl_chain.calibration.errors import RecordNotWritten, StoreDamaged
from opfl_chain.calibration.replayer import Replayed
from opfl_chain.calibration.steps import HonestStep

_STEPS = "steps"


class StepStore:
    """The records of one training run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save_step(self, step: HonestStep) -> None:
        _write(self._path(_STEPS, step.t), dataclasses.asdict(step))

    def load_step(self, t: int) -> HonestStep:
        fields = _read(self._path(_STEPS, t), HonestStep)
        return HonestStep(**{**fields, "t": int(fields["t"])})

    def save_replay(self, rule: str, t: int, replayed: Replayed) -> None:
        fields = dataclasses.asdict(replayed)
        _write(self._path(rule, t), fields)

    def load_replay(self, rule: str, t: int) -> Replayed:
        fields = _read(self._path(rule, t), Replayed)
        gradient = fields.pop("gradient")
        return Replayed(gradient, **{name: int(value) for name, value in fields.items()})

    def steps(self) -> list[int]:
        """The steps that are kept, in order."""
        return sorted(self._numbers(_STEPS))

    def replayed(self, rule: str) -> list[int]:
        """The steps that were replayed, in order."""
        return sorted(self._numbers(rule))

    def _numbers(self, kind: str) -> Iterator[int]:
        return (int(path.stem) for path in (self.folder / kind).glob("*.npz"))

    def _path(self, kind: str, t: int) -> Path:
        return self.folder / kind / f"{t:07d}.npz"


def _write(path: Path, fields: dict[str, Any]) -> None:
    partial = path.with_suffix(f".{os.getpid()}.partial")
    content = io.BytesIO()  # a zip file that could not be finished would complain later on
    np.savez(content, **fields)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content.getbuffer())
        partial.replace(path)
    except OSError as error:
        raise RecordNotWritten(path, error) from error
    finally:
        partial.unlink(missing_ok=True)


def _read(path: Path, kind: type[HonestStep | Replayed]) -> dict[str, Any]:
    try:
        with path.open("rb") as file, np.load(file) as stored:
            fields = dict(stored)
    except (OSError, ValueError, EOFError, BadZipFile, KeyError, TypeError) as error:
        raise StoreDamaged(path, str(error)) from error
    if fields.keys() != {field.name for field in dataclasses.fields(kind)}:
        raise StoreDamaged(path, f"it holds {', '.join(fields) or 'nothing'}")
    return fields
