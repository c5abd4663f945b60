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
