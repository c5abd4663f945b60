"""Data sets by name, the generated one among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opfl_chain.learning.data.examples import Dataset, DataSource, DownloadProgress, Examples
from opfl_chain.learning.data.published import FASHION_MNIST, MNIST
from opfl_chain.learning.errors import UnknownDataset
from opfl_chain.learning.seeded import random_bytes
from opfl_chain.system.plugins import Registry

SYNTHETIC = "synthetic"
CLASSES = 10

_SIDE, _CELLS = 28, 7
_SHIFT = 1
_NOISE = 4
"""The divisor of random bytes that gives the noise."""


def synthetic_dataset(seed: int = 0, *, train: int = 2_000, test: int = 500) -> Dataset:
    """Generate a cell pattern per class, shifted by up to a pixel, dimmed and noisy.

    Computed in integers, so that the images are the same bytes everywhere.
    """
    patterns = _patterns(seed)
    return Dataset(
        SYNTHETIC,
        CLASSES,
        _examples(patterns, train, "train", seed),
        _examples(patterns, test, "test", seed),
    )


class Synthetic(DataSource):
    """The generated data set of seed 0."""

    name = SYNTHETIC

    def load(
        self, data_dir: Path | None = None, *, download: bool, progress: DownloadProgress
    ) -> Dataset:
        del data_dir, download, progress
        return synthetic_dataset()


def _patterns(seed: int) -> NDArray[np.uint8]:
    cells = random_bytes(CLASSES * _CELLS**2, "synthetic patterns", seed) & 1
    pixels = np.kron(cells.reshape(CLASSES, _CELLS, _CELLS), np.ones((1, 4, 4), np.uint8))
    return pixels.astype(np.uint8)


def _examples(patterns: NDArray[np.uint8], count: int, split: str, seed: int) -> Examples:
    draws = random_bytes(3 * count, f"synthetic {split}", seed).reshape(count, 3)
    noise = random_bytes(count * _SIDE**2, f"synthetic noise of {split}", seed)
    labels = np.arange(count) % CLASSES
    images = (noise // _NOISE).reshape(count, _SIDE, _SIDE)
    for image, label, (down, right, light) in zip(
        images, labels, draws % (2 * _SHIFT + 1), strict=True
    ):
        shifts = (int(down) - _SHIFT, int(right) - _SHIFT)
        image += np.roll(patterns[label], shifts, (0, 1)) * np.uint8(128 + 12 * light)
    return Examples.of(images, labels)


BUILT_IN: dict[str, DataSource] = {
    source.name: source for source in (MNIST, FASHION_MNIST, Synthetic())
}

DATASETS: Registry[DataSource] = Registry(
    "data source",
    "opfl_chain.data_sources",
    BUILT_IN,
    UnknownDataset,
    lambda found: isinstance(found, DataSource),
)


def _silent(name: str, done: int, total: int | None) -> None:
    del name, done, total


def load_dataset(
    name: str,
    data_dir: Path | None = None,
    *,
    download: bool = True,
    progress: DownloadProgress = _silent,
) -> Dataset:
    """Load the data set of this name; without `download`, from this machine only."""
    return DATASETS[name].load(data_dir, download=download, progress=progress)
