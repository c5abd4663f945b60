"""What the trail refuses. A trail that was read and does not hold is a report, not an error."""

from __future__ import annotations

from pathlib import Path


class TrailError(Exception):
    """The root of every error of this package."""


class NoSuchJob(TrailError):
    def __init__(self, job: int, jobs: str, count: int) -> None:
        known = f"it holds jobs 1 to {count}" if count else "nobody created a job there yet"
        super().__init__(f"job {job} is not in the contract Jobs at {jobs}: {known}")


class ChainUnsteady(TrailError):
    """The blocks changed as often as they were read."""

    def __init__(self, url: str, attempts: int) -> None:
        super().__init__(
            f"{url} changed its chain {attempts} times while it was read. Try again when it has"
            " settled, or ask a node that follows the chain"
        )


class ExportInvalid(TrailError):
    """A folder that holds no export, or none that can be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}. `opfl trail export` writes such a folder")
