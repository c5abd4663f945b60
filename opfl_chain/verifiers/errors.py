"""What verifiers refuse."""

from __future__ import annotations


class VerifierError(Exception):
    """The root of every error of this package."""


class ReferenceMissing(VerifierError):
    def __init__(self, verifier: str, what: str) -> None:
        super().__init__(f"{verifier} compares with {what}, and the step was given none")


class CalibrationEmpty(VerifierError):
    def __init__(self) -> None:
        super().__init__("bounds are the largest of honest steps, and there are no steps")


class BoundaryOfAnotherPolicy(VerifierError):
    """A boundary says by which policy the gradients are encoded that it is for."""

    def __init__(self, theirs: str, ours: str) -> None:
        super().__init__(
            f"the boundary is of policy {theirs}, gradients are of policy {ours}: calibrate a"
            " boundary for it"
        )
