"""What calibration refuses."""

from __future__ import annotations

from pathlib import Path


class CalibrationError(Exception):
    """The root of every error of this package."""


class StoreDamaged(CalibrationError):
    """A record that cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason}): delete it, and it will be made again")


class NothingToCalibrate(CalibrationError):
    """No honest steps were given."""

    def __init__(self) -> None:
        super().__init__("a boundary is calibrated on honest steps, and none were given")


class PlanInvalid(CalibrationError, ValueError):
    """Steps that a training run does not have, or options that contradict each other."""


class RecordsOfAnotherRun(CalibrationError):
    """A folder whose records this run must not be mixed with."""

    def __init__(self, folder: Path, field: str, theirs: object, ours: object) -> None:
        super().__init__(
            f"{folder} holds records of another run ({field} is {theirs}, here it is {ours}):"
            " name another folder with --out, or delete this one"
        )


class RecordsOfUnknownRun(CalibrationError):
    """Records that could be anybody's."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} does not say whose records are beside it ({reason}):"
            " name another folder with --out, or delete this one"
        )


class RecordNotWritten(CalibrationError):
    """No room or no right to record. Nothing half-written is left."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"{path} cannot be written ({error.strerror or error}); what was recorded before"
            " is kept, and the same command goes on from there"
        )


class CommitteeKeepsFailing(CalibrationError):
    """Session after session failed without a single step replayed."""

    def __init__(self, sessions: int, error: Exception) -> None:
        super().__init__(f"{sessions} sessions in a row failed, the last one because {error}")
