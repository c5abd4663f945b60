"""Labelled images as they were published, before any rule of a policy is applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.training.errors import BatchInvalid


@dataclass(frozen=True)
class Examples:
    """Images as bytes, (count, height, width, channels), and their labels."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.images.ndim != 4 or self.images.dtype != np.uint8:
            raise BatchInvalid(
                f"images have shape {self.images.shape} and dtype {self.images.dtype},"
                " they must be uint8 (count, height, width, channels)"
            )
        if self.labels.shape != self.images.shape[:1] or self.labels.dtype != np.int64:
            raise BatchInvalid(
                f"labels have shape {self.labels.shape} and dtype {self.labels.dtype},"
                f" they must be {len(self.images):,} int64"
            )

    @classmethod
    def of(cls, images: NDArray[Any], labels: NDArray[Any]) -> Examples:
        """From grey images (count, height, width) and labels of any integer type."""
        return cls(images[..., np.newaxis], labels.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Sequence[int] | NDArray[np.int64] | slice) -> Examples:
        return Examples(self.images[indices], self.labels[indices])


@dataclass(frozen=True)
class Dataset:
    """A data set in its two splits. `name` says what it really holds."""

    name: str
    classes: int
    train: Examples
    test: Examples
