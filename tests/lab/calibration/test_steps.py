"""Records on disk: they are read back unchanged, and damaged ones are rejected."""

from __future__ import annotations

import dataclasses
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opfl_chain.lab.calibration.steps import HonestStep, StepStore
from opfl_chain.lab.errors import RecordNotWritten, StoreDamaged
from opfl_chain.rules.evidence import Replayed

REPLAYED = Replayed(np.arange(-3, 4), 5, wrong_side=1, activation_error=2, over_ceiling=3)


def honest_step(t: int = 3) -> HonestStep:
    rng = np.random.default_rng(t)
    weights, gradient, pre_activations = (rng.random(n, np.float32) for n in (7, 7, 4))
    return HonestStep(
        t,
        weights,
        rng.random((1, 28, 28, 1), np.float32),
        np.array([t % 10]),
        gradient,
        rng.random((1, 10), np.float32),
        pre_activations,
    )


@pytest.fixture
def store(tmp_path: Path) -> StepStore:
    return StepStore(tmp_path / "records")


def assert_equal(found: object, expected: object) -> None:
    for field in dataclasses.fields(expected):  # type: ignore[arg-type]
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        assert type(ours) is type(theirs), field.name
        assert np.array_equal(ours, theirs), field.name
        if isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype, field.name


def test_a_step_and_its_replay_are_read_back(store: StepStore) -> None:
    store.save_step(honest_step())
    store.save_replay("guided", 3, REPLAYED)
    assert_equal(store.load_step(3), honest_step())
    assert_equal(store.load_replay("guided", 3), REPLAYED)


def test_records_are_listed_in_order_and_by_rule(store: StepStore) -> None:
    assert store.steps() == []
    for t in (20, 3, 100):
        store.save_step(honest_step(t))
    store.save_replay("paper", 20, REPLAYED)
    assert store.steps() == [3, 20, 100]
    assert (store.replayed("paper"), store.replayed("guided")) == ([20], [])


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"NUMPY") + 130] ^= 1
    path.write_bytes(content)


def other_fields(path: Path) -> None:
    np.savez(path, gradient=np.zeros(3))


def one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        flip_a_byte,
        other_fields,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not a record"),
        one_array,
    ],
    ids=["truncated", "changed", "other fields", "empty", "text", "one array"],
)
def test_a_damaged_record_is_named(store: StepStore, damage: Callable[[Path], None]) -> None:
    store.save_step(honest_step())
    path = store.folder / "steps" / "0000003.npz"
    damage(path)
    with pytest.raises(StoreDamaged, match=r"0000003\.npz is damaged .*: delete it"):
        store.load_step(3)


def test_nothing_is_left_of_a_record_that_does_not_fit_on_the_disk(store: StepStore) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(RecordNotWritten, match=r"File too large.*run the same command again"):
            store.save_replay("guided", 3, REPLAYED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((store.folder / "guided").iterdir()) == []
    assert store.replayed("guided") == []
