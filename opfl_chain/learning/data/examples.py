"""Labelled images before any rule of a policy is applied, and the interface of their sources."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.errors import BatchInvalid, PolicyUnusable
from opfl_chain.protocol.policy import DataRules

DownloadProgress = Callable[[str, int, int | None], None]
"""Called with the file's name, bytes so far, and the total if known."""


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
        """Make examples from grey images (count, height, width) and integer labels."""
        return cls(images[..., np.newaxis], labels.astype(np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Sequence[int] | NDArray[np.int64] | slice) -> Examples:
        return Examples(self.images[indices], self.labels[indices])


@dataclass(frozen=True)
class Dataset:
    """A data set in its two splits. `name` describes the actual content."""

    name: str
    classes: int
    train: Examples
    test: Examples


class DataSource(ABC):
    """A named data set: published files, generated examples, or a user's own."""

    name: str
    """The name that settings and `--dataset` give."""

    @abstractmethod
    def load(
        self, data_dir: Path | None = None, *, download: bool, progress: DownloadProgress
    ) -> Dataset:
        """Return the data set; without `download`, from this machine only.

        `data_dir` is a folder of the user's to look into first. Raise `DatasetMissing` with the
        remedies if the data set was not found.
        """


def features_of(images: NDArray[np.uint8], rules: DataRules) -> NDArray[np.float32]:
    """Return (byte / 255 - mean) / std for each channel, in float64, rounded to float32 once."""
    if images.shape[1:] != rules.input_shape:
        raise PolicyUnusable(
            f"images have shape {images.shape[1:]}, the policy says {rules.input_shape}"
        )
    if len(rules.mean) not in (1, images.shape[-1]):
        raise PolicyUnusable(
            f"the policy has {len(rules.mean)} means, images have {images.shape[-1]} channels:"
            " give one mean, or one for each channel"
        )
    if not all(map(math.isfinite, (*rules.mean, *rules.std))):
        raise PolicyUnusable(f"mean {rules.mean} or deviation {rules.std} is not finite")
    features = (images / 255.0 - np.array(rules.mean)) / np.array(rules.std)
    rounded: NDArray[np.float32] = features.astype(np.float32)
    return rounded
