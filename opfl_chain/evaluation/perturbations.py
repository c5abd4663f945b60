"""Gradients that a cheating client might commit to: the honest one, moved by a part of its norm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Direction = Callable[[Vector, np.random.Generator], Vector]
"""From a gradient to the direction, of length one, that it is moved in."""


def dense_random(gradient: Vector, random: np.random.Generator) -> Vector:
    return _of_length_one(random.standard_normal(gradient.size))


def along_gradient(gradient: Vector, random: np.random.Generator) -> Vector:
    """The gradient times 1 + beta."""
    del random
    return _of_length_one(gradient)


def top_random(part: float) -> Direction:
    """The largest coordinates alone, all by the same amount, up or down at random."""

    def direction(gradient: Vector, random: np.random.Generator) -> Vector:
        top = _largest(gradient, part)
        return _spread(gradient.size, top, random.choice((-1.0, 1.0), top.size))

    return direction


def top_against(part: float) -> Direction:
    """The largest coordinates alone, all by the same amount, against their sign."""

    def direction(gradient: Vector, random: np.random.Generator) -> Vector:
        del random
        top = _largest(gradient, part)
        return _spread(gradient.size, top, np.where(gradient[top] < 0, 1.0, -1.0))

    return direction


PERTURBATIONS: Mapping[str, Direction] = MappingProxyType(
    {
        "dense": dense_random,
        "along": along_gradient,
        "top10pct": top_random(0.1),
        "top10pct_against": top_against(0.1),
        "top1pct": top_random(0.01),
        "top1pct_against": top_against(0.01),
        "single": top_against(0.0),
    }
)


def length(vector: Vector) -> float:
    """The L2 norm, or the smallest number there is: safe to divide by."""
    return max(float(np.linalg.norm(vector)), float(np.finfo(np.float64).tiny))


def _largest(gradient: Vector, part: float) -> NDArray[np.int64]:
    """Where the largest part of the coordinates is: one of them at least."""
    count = max(int(part * gradient.size), 1)
    return np.argpartition(np.abs(gradient), gradient.size - count)[-count:]


def _spread(size: int, where: NDArray[np.int64], signs: Vector) -> Vector:
    direction = np.zeros(size)
    direction[where] = signs
    return _of_length_one(direction)


def _of_length_one(vector: Vector) -> Vector:
    return vector * (1 / length(vector))
