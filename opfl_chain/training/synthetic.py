"""A small data set that is generated: ten patterns that a LeNet learns in a few hundred steps.

Integers only, so that the images are the same bytes everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opfl_chain.training.examples import Dataset, Examples
from opfl_chain.training.random_bits import random_bytes

SYNTHETIC = "synthetic"
CLASSES = 10

_SIDE, _CELLS = 28, 7
_SHIFT = 1
_NOISE = 4
"""Noise is a random byte divided by this."""


def synthetic_dataset(seed: int = 0, *, train: int = 2_000, test: int = 500) -> Dataset:
    """Patterns of cells, one for each class, shifted by up to a pixel, dimmed and noisy."""
    patterns = _patterns(seed)
    return Dataset(
        SYNTHETIC,
        CLASSES,
        _examples(patterns, train, "train", seed),
        _examples(patterns, test, "test", seed),
    )


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
