import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.learning.errors import LayoutMismatch, ModelError, UnknownModel
from opfl_chain.learning.layout import Parameter, ParameterLayout, dense
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.registry import MODELS, model_named
from opfl_chain.learning.seeded import initial_parameters

LAYOUT = LENET_61706.layout


@pytest.mark.parametrize(("name", "size"), [("lenet-61706", 61_706), ("lenet-431080", 431_080)])
def test_registry_finds_models_with_the_papers_number_of_parameters(name: str, size: int) -> None:
    assert model_named(name).layout.size == size


def test_registry_names_what_it_knows() -> None:
    with pytest.raises(UnknownModel, match="lenet-431080, lenet-61706"):
        model_named("lenet")


def test_order_is_the_documented_one() -> None:
    assert LAYOUT.names == (
        *("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight", "fc1.bias"),
        *("fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"),
    )
    assert LAYOUT.shapes["conv2.weight"] == (5, 5, 6, 16)
    assert LAYOUT.shapes["fc1.weight"] == (400, 120)


def test_flatten_and_unflatten_are_inverse() -> None:
    vector = np.arange(LAYOUT.size, dtype=np.float64)
    arrays = LAYOUT.unflatten(vector)
    # Whatever the order of the mapping, and whether arrays are contiguous or not.
    shuffled = {name: np.asfortranarray(arrays[name]) for name in reversed(LAYOUT.names)}
    assert np.array_equal(LAYOUT.flatten(shuffled), vector)


@given(st.integers(0, LAYOUT.size - 1))
def test_locate_names_the_coordinate_that_unflatten_puts_there(index: int) -> None:
    vector = np.zeros(LAYOUT.size)
    vector[index] = 1
    name, _, position = LAYOUT.locate(index).rstrip("]").partition("[")
    assert LAYOUT.unflatten(vector)[name][tuple(map(int, position.split(",")))] == 1


def test_locate_refuses_an_index_outside() -> None:
    with pytest.raises(LayoutMismatch, match="61706 is not in a vector of 61,706"):
        LAYOUT.locate(61_706)


def test_flatten_refuses_what_is_not_the_layout() -> None:
    arrays = LAYOUT.unflatten(np.zeros(LAYOUT.size))
    with pytest.raises(LayoutMismatch, match=r"missing \['fc3.bias'\], not a parameter \['x'\]"):
        LAYOUT.flatten({n if n != "fc3.bias" else "x": a for n, a in arrays.items()})
    with pytest.raises(LayoutMismatch, match=r"fc3.bias has shape \(9,\), it must be \(10,\)"):
        LAYOUT.flatten({**arrays, "fc3.bias": np.zeros(9)})
    with pytest.raises(LayoutMismatch, match="dtypes float32, float64"):
        LAYOUT.flatten({**arrays, "fc3.bias": np.zeros(10, np.float32)})
    with pytest.raises(LayoutMismatch, match="61,706 parameters"):
        LAYOUT.unflatten(np.zeros(61_705))


def test_names_must_be_unique() -> None:
    with pytest.raises(LayoutMismatch, match="not unique"):
        ParameterLayout((*dense("a", 2, 3), *dense("a", 2, 3)))


def test_frozen_parameters_are_not_in_the_trainable_vector() -> None:
    """As a LoRA adapter has it: the base is frozen and public, the factors are trained."""
    layout = ParameterLayout(
        (
            Parameter("base", (4, 4), 0.5, trainable=False),
            Parameter("lora_a", (4, 2), 0.5),
            Parameter("lora_b", (2, 4), 0.0),
        )
    )
    assert (layout.trainable.names, layout.trainable.size) == (("lora_a", "lora_b"), 16)
    assert (layout.frozen.names, layout.frozen.size) == (("base",), 16)
    arrays = initial_parameters(layout, 1)
    assert not arrays["lora_b"].any()
    assert arrays["base"].any()


def test_initial_parameters_are_the_same_bytes_everywhere() -> None:
    hashes = {
        name: hashlib.sha256(
            layout.flatten(initial_parameters(layout, 7)).astype("<f4").tobytes()
        ).hexdigest()
        for name, layout in ((name, model_named(name).layout) for name in MODELS)
    }
    assert hashes == {
        "lenet-61706": "47bd90c3301f71f7a4d52e38f4271910964e8db10613b6691d55dc7fcae74173",
        "lenet-431080": "271aaecc18d7df9e582eb6bb60d2033630000f02b11d56b5c5ac5ea1233a7ef5",
    }


def test_initial_parameters_fill_their_bounds_and_differ_by_seed() -> None:
    first, second = (initial_parameters(LAYOUT, seed) for seed in (0, 1))
    for parameter in LAYOUT:
        array = first[parameter.name]
        assert array.dtype == np.float32
        assert np.abs(array).max() <= parameter.bound
        assert not np.array_equal(array, second[parameter.name])
    weight = first["fc1.weight"] / 0.05
    assert abs(weight.mean()) < 0.01
    assert abs(weight.std() - 3**-0.5) < 0.01


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_initial_parameters_refuse_a_seed_out_of_range(seed: int) -> None:
    with pytest.raises(ModelError, match=r"in \[0, 2\^64\)"):
        initial_parameters(LAYOUT, seed)
