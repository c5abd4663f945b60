"""What training refuses, and what it cannot find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


class TrainingError(Exception):
    """The root of every error that `opfl_chain.training` raises on its own account."""


# --- data


class UnknownDataset(TrainingError, ValueError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"there is no data set {name!r}. Known data sets: {', '.join(sorted(known))}."
        )


class DatasetMissing(TrainingError):
    """No place has the data set. Says where it was looked for, and how to get it."""

    def __init__(self, title: str, attempts: Sequence[str], remedies: Sequence[str]) -> None:
        looked = "".join(f"\n  - {attempt}" for attempt in attempts)
        do = "".join(f"\n  - {remedy}" for remedy in remedies)
        super().__init__(f"{title} was not found. Tried:{looked}\nDo one of these:{do}")


class DataFileInvalid(TrainingError, ValueError):
    """A file that is there, and is not what it should be."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path


class SourceFailed(TrainingError):
    """A place from which data can be fetched did not give it."""


class SplitImpossible(TrainingError, ValueError):
    """More clients or examples for each than the data set has."""


class BatchInvalid(TrainingError, ValueError):
    """Examples or labels that are not a batch of the model, or of the policy."""


# --- learning


class DeviceMissing(TrainingError, ValueError):
    """A device that this machine does not have."""


class PolicyUnusable(TrainingError, ValueError):
    """A policy whose model and data do not fit together."""


class GradientNotFinite(TrainingError, ArithmeticError):
    def __init__(self, place: str, value: float) -> None:
        super().__init__(
            f"the gradient is {value} at {place}: there is nothing to commit to. The model has "
            "diverged, or the input is not finite; a lower learning rate or normalised data help."
        )
        self.place = place


class UpdateInvalid(TrainingError, ValueError):
    """Weights, gradient and state that are not of one model, or not finite."""


class StateInvalid(TrainingError, ValueError):
    """Bytes that are not the state of an optimizer."""


class DenormalsFlushed(TrainingError, ArithmeticError):
    def __init__(self) -> None:
        super().__init__(
            "this thread rounds the smallest numbers to zero, so that its updates would not be the "
            "bytes of others. Undo torch.set_flush_denormal(True), or do not load the library that "
            "was built with -ffast-math."
        )
