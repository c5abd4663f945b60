"""What can go wrong with a job on one machine."""

from __future__ import annotations


class LocalnetError(Exception):
    """The root of every error of this package."""


class PlanInvalid(LocalnetError):
    """What was asked for is no job."""


class DaemonEnded(LocalnetError):
    """A process that should run does not."""


class NoProgress(LocalnetError):
    """The job did not get on in time."""


class DataMissing(LocalnetError):
    """The data set that everybody trains on is not to be had."""
