"""Detection floors: the smallest cheat that a boundary rejects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluation_support import GUIDED, RULES, made_up_gradient, made_up_records

from opfl_chain.lab.boundary.evaluated import Evaluated, Extent
from opfl_chain.lab.boundary.floors import (
    PERTURBATIONS,
    SIZES,
    cheat_on,
    floor_at,
    floor_fields,
    floors_of,
    highest,
    seen,
)
from opfl_chain.rules.rule import AnyRule


def test_sizes_are_ten_a_decade_from_a_millionth_to_one() -> None:
    assert len(SIZES) == 61
    assert SIZES[0] == pytest.approx(1e-6)
    assert SIZES[-1] == 1


@pytest.mark.parametrize(
    ("kind", "moved"),
    [
        ("dense", 61_706),
        ("top10pct", 6_170),
        ("top10pct_against", 6_170),
        ("top1pct", 617),
        ("top1pct_against", 617),
        ("single", 1),
    ],
)
def test_a_direction_is_of_length_one_on_the_largest_coordinates(kind: str, moved: int) -> None:
    gradient = made_up_gradient(1).astype(np.float64)
    direction = PERTURBATIONS[kind](gradient, np.random.default_rng(0))
    where = np.flatnonzero(direction)
    assert np.linalg.norm(direction) == pytest.approx(1)
    assert where.size == moved
    if kind != "dense":
        others = np.delete(np.abs(gradient), where)
        assert np.abs(gradient[where]).min() >= others.max()
    if kind.endswith(("against", "single")):
        assert (direction[where] * gradient[where] < 0).all()


def test_along_the_gradient_is_a_multiple_of_it() -> None:
    gradient = made_up_gradient(1).astype(np.float64)
    direction = PERTURBATIONS["along"](gradient, np.random.default_rng(0))
    np.testing.assert_allclose(direction * np.linalg.norm(gradient), gradient, rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", PERTURBATIONS)
def test_the_floor_is_where_rejection_begins(tmp_path: Path, rule: AnyRule, kind: str) -> None:
    records = made_up_records(tmp_path, 3, rule)
    boundary = records.boundary([0, 1])
    cheat = cheat_on(records, 2, kind, seed=0)
    found = cheat.floor(boundary)
    first = SIZES.index(found) if found is not None else len(SIZES)
    tried = {*range(0, len(SIZES), 10), first - 1, first} & set(range(len(SIZES)))
    for index in tried:
        assert cheat._rejected(boundary, index) == (index >= first), SIZES[index]


def test_a_wider_boundary_has_a_higher_floor(tmp_path: Path) -> None:
    records = made_up_records(tmp_path, 4)
    boundaries = {alpha: records.boundary([0, 1], alpha) for alpha in (2.0, 200.0)}
    floors = floors_of(records, boundaries, [2, 3], ("dense",), seed=0)
    narrow, wide = (floor_at(floors[alpha]["dense"], 100) for alpha in boundaries)
    assert narrow is not None
    assert wide is not None
    assert 10 * narrow < wide


def test_floors_of_a_part_of_the_steps() -> None:
    floors = [1e-3, None, 1e-5, 1e-4]
    assert floor_at(floors, 50) == 1e-4
    assert floor_at(floors, 100) is None
    assert floor_at([], 100) is None
    fields = {"floor_dense_100": None, "floor_dense_99": None, "floor_dense_50": 1e-4}
    assert floor_fields({"dense": floors}) == fields
    assert seen(floors, 1e-4) == 0.5
    assert highest([3, 5, 7, 9], floors) == 5


@pytest.mark.parametrize("rule", RULES)
def test_a_step_without_a_gradient_is_judged_but_not_perturbed(
    tmp_path: Path, rule: AnyRule
) -> None:
    records = made_up_records(tmp_path, 4, rule)
    step = records.store.load_step(3)
    records.store.save_step(replace(step, gradient=np.zeros_like(step.gradient)))
    records.store.save_replay(
        rule.name,
        3,
        replace(records.store.load_replay(rule.name, 3), lift=23 if rule == GUIDED else 0),
    )
    evaluated = Evaluated(records, Extent(calibration_steps=2))
    zero = rule == GUIDED  # the paper's rule has no smallest gradient
    assert evaluated.row()["zero_gradient_steps"] == zero
    assert (3 in evaluated.with_gradient) != zero
