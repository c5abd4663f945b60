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
