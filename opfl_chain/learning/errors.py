"""Errors of models, data and training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


class ModelError(ValueError):
    """The root error of models and their operations."""


class UnknownModel(ModelError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown model {name!r}. Known models: {', '.join(sorted(known))}.")


class UnknownOperation(ModelError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"unknown operation {name!r}. Known operations: {', '.join(sorted(known))}."
        )


class FormMissing(ModelError, NotImplementedError):
    """An operation that cannot run in some form."""

    def __init__(self, operation: object, form: str) -> None:
        super().__init__(
            f"operation {type(operation).__name__} has no method `{form}`: define it to use the"
            " operation there"
        )


class ShapeMismatch(ModelError):
    """Arrays whose shapes do not fit an operation or a model."""


class OptionsInvalid(ModelError):
    """Options of a policy that a model or an optimizer does not take."""


class LayoutMismatch(ModelError):
    """Arrays that do not match the parameters of the model in name, shape, length or dtype."""


class TrainingError(Exception):
    """The root error of data and training."""


# --- data


class UnknownDataset(TrainingError, ValueError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown data set {name!r}. Known data sets: {', '.join(sorted(known))}.")


class DatasetMissing(TrainingError):
    """A data set that was not found. The message lists the places tried and the remedies."""

    def __init__(self, title: str, attempts: Sequence[str], remedies: Sequence[str]) -> None:
        looked = "".join(f"\n  - {attempt}" for attempt in attempts)
        do = "".join(f"\n  - {remedy}" for remedy in remedies)
        super().__init__(f"{title} was not found. Tried:{looked}\nDo one of these:{do}")


class DataFileInvalid(TrainingError, ValueError):
    """A file whose content is not the expected one."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = path


class SourceFailed(TrainingError):
    """A failed download from one source."""


class SplitImpossible(TrainingError, ValueError):
    """A split into more clients or examples than the data set has."""


class BatchInvalid(TrainingError, ValueError):
    """Examples or labels that do not fit the model or the policy."""


# --- learning


class DeviceMissing(TrainingError, ValueError):
    """A device that this machine does not have."""


class PolicyUnusable(TrainingError, ValueError):
    """A policy whose model and data do not fit together."""


class GradientNotFinite(TrainingError, ArithmeticError):
    def __init__(self, place: str, value: float) -> None:
        super().__init__(
            f"the gradient is {value} at {place}: it cannot be committed to. The model has "
            "diverged, or the input is not finite; lower the learning rate or normalise the data."
        )
        self.place = place


class UpdateInvalid(TrainingError, ValueError):
    """Weights, gradient or state that do not belong together."""


class UpdateNotFinite(UpdateInvalid, ArithmeticError):
    """An update whose result is not finite. By the specification the model then stays as it is."""

    def __init__(self) -> None:
        super().__init__(
            "the update leaves the range of float32: the gradient is not finite, or the"
            " learning rate of the policy is too high"
        )


class UnknownOptimizer(TrainingError, ValueError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"unknown optimizer {name!r}. Known optimizers: {', '.join(sorted(known))}."
        )


class StateInvalid(TrainingError, ValueError):
    """Bytes that are not the state of an optimizer."""


class DenormalsFlushed(TrainingError, ArithmeticError):
    def __init__(self) -> None:
        super().__init__(
            "this thread flushes denormal numbers to zero, so its updates would differ from those "
            "of others. Undo torch.set_flush_denormal(True), or do not load the library that "
            "was built with -ffast-math."
        )
