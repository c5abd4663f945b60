"""Errors of calibration and evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class CalibrationError(Exception):
    """Base class of the errors of this package."""


class StoreDamaged(CalibrationError):
    """A record cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason}): delete it to have it made again")


class PlanInvalid(CalibrationError, ValueError):
    """Steps beyond the training run, or contradictory options."""


class RecordsOfAnotherRun(CalibrationError):
    """The folder holds records of another run, which must not be mixed with this one's."""

    def __init__(self, folder: Path, field: str, theirs: object, ours: object) -> None:
        super().__init__(
            f"{folder} holds records of another run ({field} is {theirs}, here it is {ours}):"
            " name another folder with --out, or delete this one"
        )


class RecordsOfUnknownRun(CalibrationError):
    """The run that the records belong to is unknown."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} does not identify the run of the records beside it ({reason}):"
            " name another folder with --out, or delete this one"
        )


class RecordNotWritten(CalibrationError):
    """Writing a record failed, for lack of space or permission. No partial file is left."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"{path} cannot be written ({error.strerror or error}). Earlier records are kept:"
            " run the same command again to resume"
        )


class CommitteeKeepsFailing(CalibrationError):
    """Too many sessions in a row failed without replaying a step."""

    def __init__(self, sessions: int, error: Exception) -> None:
        super().__init__(f"{sessions} sessions in a row failed. Last error: {error}")


class EvaluationError(Exception):
    """Base class of the errors of this package."""


class RecordsMissing(EvaluationError):
    """A training run or its replays by a rule are not recorded."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(
            f"{folder} has no {what}. Record them with --make, or select recorded runs with"
            " --only MODEL-DATASET and --rule RULE"
        )


class RecordsInconsistent(EvaluationError):
    """Steps and replays of different runs or policies."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"the records in {folder} are inconsistent: {reason}")


class TooFewSteps(EvaluationError):
    def __init__(self, folder: Path, rule: str, replayed: int, calibration_steps: int) -> None:
        super().__init__(
            f"{folder} has {replayed} replays by rule {rule}, but {calibration_steps} for"
            " calibration and at least one to evaluate are needed. Lower --calibration-steps, or"
            " record more steps with --make"
        )


class NoSuchRun(EvaluationError):
    def __init__(self, name: str, models: Sequence[str], datasets: Sequence[str]) -> None:
        super().__init__(
            f"{name!r} is not the name of a run. Use MODEL-DATASET with one of the models"
            f" {', '.join(models)} and one of the data sets {', '.join(datasets)}"
        )


class NoProofs(EvaluationError):
    def __init__(self, rule: str) -> None:
        super().__init__(
            f"rule {rule} judges replays, not proofs: choose one whose clients prove their steps,"
            " such as --rule proved"
        )


class ResultMissing(EvaluationError):
    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(
            f"{folder} has no result for {name}. Make it with: opfl evaluate {name} --out {folder}"
        )


class ResultDamaged(EvaluationError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}. Delete it to have it computed again")


class ResultsOfAnotherRun(EvaluationError):
    """The folder holds results with other settings, which must not be mixed with these."""

    def __init__(self, folder: Path, setting: str, theirs: object, ours: object) -> None:
        super().__init__(
            f"{folder} holds results of another run: its {setting} is {theirs}, here it is {ours}."
            " Choose another folder with --out"
        )


class ResultsOfUnknownRun(EvaluationError):
    def __init__(self, folder: Path, found: str, claim: str) -> None:
        super().__init__(
            f"{folder} has {found} but no {claim}, which records its settings. Choose another"
            " folder with --out"
        )


class TooFewInstances(EvaluationError):
    def __init__(self, run: str) -> None:
        super().__init__(
            f"no recorded step of {run} has an honest update that predicts correctly: record more"
            " steps with --make"
        )


class RecordsNeeded(EvaluationError):
    def __init__(self) -> None:
        super().__init__(
            "this table evaluates recorded steps: name their folder with --records DIR, and add"
            " --make if they are not recorded yet"
        )
