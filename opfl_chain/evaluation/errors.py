"""What evaluation refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class EvaluationError(Exception):
    """The root of every error of this package."""


class RecordsMissing(EvaluationError):
    """A training run, or its replays by one of the rules, was not recorded."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(
            f"{folder} has no {what}. Make what is missing with --make, or choose what there is"
            " with --only MODEL-DATASET and --rule RULE"
        )


class RecordsInconsistent(EvaluationError):
    """Steps and replays that do not belong together."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder} does not hold one run of one policy: {reason}")


class TooFewSteps(EvaluationError):
    def __init__(self, folder: Path, rule: str, replayed: int, calibration_steps: int) -> None:
        super().__init__(
            f"{folder} has {replayed} replays by rule {rule}: {calibration_steps} are to be"
            " calibrated on, and at least one more to be judged. Lower --calibration-steps, or"
            " record more steps with --make"
        )


class NoSuchRun(EvaluationError):
    def __init__(self, name: str, models: Sequence[str], datasets: Sequence[str]) -> None:
        super().__init__(
            f"{name!r} is not the name of a run, which is MODEL-DATASET with a model of"
            f" {', '.join(models)} and a data set of {', '.join(datasets)}"
        )


class ResultMissing(EvaluationError):
    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(
            f"{folder} has no result of {name}. Make it with: opfl evaluate {name} --out {folder}"
        )


class ResultDamaged(EvaluationError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}. Delete it, and it is computed again")


class ResultsOfAnotherRun(EvaluationError):
    """Results of two sets of settings would be mixed."""

    def __init__(self, folder: Path, setting: str, theirs: object, ours: object) -> None:
        super().__init__(
            f"{folder} holds results of another run: its {setting} is {theirs}, here it is {ours}."
            " Choose another folder with --out"
        )


class ResultsOfUnknownRun(EvaluationError):
    def __init__(self, folder: Path, found: str, claim: str) -> None:
        super().__init__(
            f"{folder} has {found} but no {claim}, which says what it was made with. Choose another"
            " folder with --out"
        )


class TooFewInstances(EvaluationError):
    def __init__(self, run: str) -> None:
        super().__init__(
            f"no recorded step of {run} has an honest update that predicts rightly: record more"
            " with --make"
        )


class RecordsNeeded(EvaluationError):
    def __init__(self) -> None:
        super().__init__(
            "this table judges recorded steps: name their folder with --records DIR, and add --make"
            " if they are not there yet"
        )
