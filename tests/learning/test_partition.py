"""Splits give every example to one client, and the seed decides which."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.learning.data.partition import Schedule, split_dirichlet, split_iid
from opfl_chain.learning.errors import BatchInvalid, SplitImpossible

seeds = st.integers(0, 2**53)
alphas = st.floats(0.01, 100)


@st.composite
def possible(draw: st.DrawFn) -> tuple[int, int, int]:
    """Examples, clients and a minimum that they can all have."""
    clients, minimum = draw(st.integers(1, 12)), draw(st.integers(0, 8))
    least = clients * max(minimum, 1)
    return draw(st.integers(least, least + 300)), clients, minimum


def labels_of(count: int) -> np.ndarray:
    return np.arange(count) * 7 % 10


@given(possible(), seeds)
def test_iid_parts_are_disjoint_complete_and_equal(case: tuple[int, int, int], seed: int) -> None:
    count, clients, minimum = case
    parts = split_iid(count, clients, seed, minimum=minimum)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(count))
    sizes = [len(part) for part in parts]
    assert len(parts) == clients
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= minimum


@given(possible(), alphas, seeds)
def test_dirichlet_parts_are_disjoint_complete_and_not_too_small(
    case: tuple[int, int, int], alpha: float, seed: int
) -> None:
    count, clients, minimum = case
    parts = split_dirichlet(labels_of(count), clients, alpha, seed, minimum=minimum)
    assert len(parts) == clients
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(count))
    assert min(len(part) for part in parts) >= minimum
    again = split_dirichlet(labels_of(count), clients, alpha, seed, minimum=minimum)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


def test_a_small_alpha_makes_clients_differ_and_a_large_one_does_not() -> None:
    labels = labels_of(5_000)

    def imbalance(alpha: float) -> float:
        parts = split_dirichlet(labels, 5, alpha, seed=1)
        counts = np.array([np.bincount(labels[part], minlength=10) for part in parts])
        return float((counts / counts.sum(0)).std())

    assert imbalance(0.1) > 0.25
    assert imbalance(1_000) < 0.02


def test_split_is_the_same_everywhere() -> None:
    assert [part.tolist() for part in split_iid(7, 3, seed=1)] == [[1, 4, 6], [2, 5], [0, 3]]


def test_seeds_give_different_splits() -> None:
    first, second = (split_iid(100, 2, seed)[0] for seed in (0, 1))
    assert not np.array_equal(first, second)
    first, second = (split_dirichlet(labels_of(100), 2, 1.0, seed)[0] for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_impossible_splits_are_refused() -> None:
    with pytest.raises(SplitImpossible, match="5 clients with at least 3 examples each need 15, "):
        split_iid(14, 5, 0, minimum=3)
    with pytest.raises(SplitImpossible, match="0 clients"):
        split_iid(14, 0, 0)
    with pytest.raises(SplitImpossible, match="alpha is 0"):
        split_dirichlet(labels_of(10), 2, 0.0, 0)


@given(st.integers(1, 40), st.data(), seeds, st.integers(0, 100))
def test_an_epoch_uses_every_example_once(
    examples: int, data: st.DataObject, seed: int, client: int
) -> None:
    batch_size = data.draw(st.integers(1, examples))
    schedule = Schedule(seed, client, examples, batch_size)
    rounds = 3 * examples // batch_size + 1
    drawn = np.concatenate([schedule.indices(t) for t in range(rounds)])
    for epoch in range(rounds * batch_size // examples):
        used = drawn[epoch * examples : (epoch + 1) * examples]
        assert np.array_equal(np.sort(used), np.arange(examples))


def test_schedule_depends_on_seed_client_and_round_alone() -> None:
    def indices(**changes: int) -> list[int]:
        fields = {"seed": 3, "client": 1, "examples": 50, "batch_size": 5} | changes
        return Schedule(**fields).indices(17).tolist()

    assert indices() == indices() == [31, 29, 22, 8, 43]
    assert indices(seed=4) != indices()
    assert indices(client=2) != indices()
    assert Schedule(3, 1, 50, 5).indices(7).tolist() != indices()


def test_impossible_schedules_are_refused() -> None:
    with pytest.raises(BatchInvalid, match="client 2 has 4 examples, for batches of 5"):
        Schedule(0, 2, 4, 5)
    with pytest.raises(BatchInvalid, match="round is -1"):
        Schedule(0, 2, 4, 1).indices(-1)
