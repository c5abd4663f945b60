"""Models by name and options, and operations by name in every form."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from opfl_chain.learning.errors import (
    FormMissing,
    ModelError,
    OptionsInvalid,
    ShapeMismatch,
    UnknownOperation,
)
from opfl_chain.learning.layout import ParameterLayout, dense
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.model import Model, operations_of, relu_shapes
from opfl_chain.learning.operations.operation import Operation
from opfl_chain.learning.operations.table import OPERATIONS, Operations, Recording, ShapeOperations
from opfl_chain.learning.registry import MODELS, model_named, model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.mpc.replay.default_policy import default_policy

ARRAYS = {
    "convolution": [(2, 6, 6, 3), (3, 3, 3, 4), (4,)],
    "dense": [(2, 5), (5, 3), (3,)],
    "relu": [(2, 5)],
    "average_pool": [(2, 4, 6, 3)],
    "softmax": [(2, 5)],
}
OPTIONS = {"convolution": {"padding": 1}}


@pytest.mark.parametrize("name", OPERATIONS)
def test_all_forms_of_an_operation_compute_the_same(name: str) -> None:
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in ARRAYS[name]]
    options = OPTIONS.get(name, {})

    def result(form, convert):
        return getattr(Operations(form), name)(*map(convert, arrays), name="layer", **options)

    expected = result("torch", torch.tensor).numpy()
    for form in ("jax", "mpc"):
        np.testing.assert_allclose(result(form, jnp.asarray), expected, atol=1e-5)
    shaped = ShapeOperations().apply(name, *arrays, name="layer", **options)
    assert shaped.shape == expected.shape


def test_an_unknown_operation_names_those_that_there_are() -> None:
    with pytest.raises(UnknownOperation, match="average_pool, convolution, dense, relu, softmax"):
        Operations("jax").gelu(np.zeros(3), name="fc1")


def test_shapes_that_do_not_fit_name_the_layer() -> None:
    with pytest.raises(ShapeMismatch, match=r"dense fc1: .* \(1, 5\), \(4, 3\), \(3,\), expected"):
        ShapeOperations().dense(*map(np.zeros, [(1, 5), (4, 3), 3]), name="fc1")


def test_a_form_that_an_operation_lacks_is_named() -> None:
    class Gelu(Operation):
        pass

    with pytest.raises(FormMissing, match="operation Gelu has no method `torch`"):
        Gelu().torch(np.zeros(3))


def test_two_relus_of_one_name_are_refused() -> None:
    recording = Recording(ShapeOperations())
    recording.relu(np.zeros(3), name="fc1")
    with pytest.raises(ModelError, match="relu fc1 occurs twice"):
        recording.relu(np.zeros(3), name="fc1")


class Perceptron(Model):
    """A model of known operations, as a plug-in has it."""

    name = "perceptron"
    input_shape = (4,)
    classes = 3

    def __init__(self, hidden: int = 5) -> None:
        self.hidden = hidden

    @property
    def options(self):
        return {"hidden": self.hidden}

    @property
    def layout(self) -> ParameterLayout:
        return ParameterLayout((*dense("fc1", 4, self.hidden), *dense("fc2", self.hidden, 3)))

    def logits(self, parameters, examples, operations):
        values = operations.dense(
            examples, parameters["fc1.weight"], parameters["fc1.bias"], name="fc1"
        )
        values = operations.relu(values, name="fc1")
        return operations.dense(
            values, parameters["fc2.weight"], parameters["fc2.bias"], name="fc2"
        )


def test_a_new_model_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS._builtin, "perceptron", Perceptron)
    policy = default_policy(model_named("perceptron", hidden=7))
    model = model_of(policy)
    assert policy.model.parameters == {"hidden": 7}
    assert relu_shapes(model, 2) == {"fc1": (2, 7)}
    assert operations_of(model) == {"dense", "relu"}
    result = LocalStep.of_policy(policy).run(
        initial_parameters(model.layout, 0), np.ones((1, 4), np.float32), np.array([1])
    )
    assert result.gradient.size == model.layout.size == 4 * 7 + 7 + 7 * 3 + 3


def test_logits_of_another_shape_are_refused() -> None:
    class Wrong(Perceptron):
        classes = 4

    with pytest.raises(ShapeMismatch, match=r"perceptron have shape \(1, 3\), expected \(1, 4\)"):
        relu_shapes(Wrong())


def test_an_unknown_option_names_those_that_there_are() -> None:
    with pytest.raises(
        OptionsInvalid,
        match=r"model lenet-61706 has no option 'dropout'\. Its options are: frozen\.",
    ):
        model_named("lenet-61706", dropout=0.5)


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        ("conv3", "'conv3', which is not a layer or parameter of the model"),
        ("conv", "'conv', which is not a layer"),
        ("conv1,conv2,fc1,fc2,fc3", "at least one must be trained"),
        (3, "frozen is 3"),
    ],
)
def test_a_wrong_choice_of_frozen_parameters_is_refused(frozen: str, message: str) -> None:
    with pytest.raises(OptionsInvalid, match=message):
        model_named("lenet-61706", frozen=frozen)


@pytest.mark.parametrize(
    ("frozen", "names"),
    [
        ("", ()),
        ("conv1", ("conv1.weight", "conv1.bias")),
        ("conv1.weight, fc3", ("conv1.weight", "fc3.weight", "fc3.bias")),
    ],
)
def test_a_policy_freezes_layers_or_single_parameters(frozen: str, names: tuple) -> None:
    policy = default_policy(LENET_61706.with_options(frozen=frozen))
    assert model_of(policy).layout.frozen.names == names


def test_options_are_part_of_the_policys_hash_and_defaults_are_not_written() -> None:
    plain, frozen = LENET_61706, LENET_61706.with_options(frozen="conv1")
    assert default_policy(plain).hash == default_policy(plain.with_options(frozen="")).hash
    assert default_policy(plain).hash != default_policy(frozen).hash


def test_the_gradient_of_a_frozen_model_is_a_part_of_the_whole_one() -> None:
    generator = np.random.default_rng(3)
    images, labels = generator.random((2, 28, 28, 1), np.float32), np.array([3, 4])
    parameters = initial_parameters(LENET_61706.layout, 5)
    frozen = LENET_61706.with_options(frozen="conv1,fc2.bias")
    whole, part = (
        LocalStep(model, torch.device("cpu")).run(parameters, images, labels).gradient
        for model in (LENET_61706, frozen)
    )
    assert np.array_equal(frozen.layout.trainable_part(whole), part)
    zeros = np.zeros_like(whole)
    put_back = frozen.layout.unflatten(frozen.layout.with_trainable_part(zeros, part))
    assert not put_back["conv1.weight"].any()
    assert np.array_equal(put_back["fc1.weight"], LENET_61706.layout.unflatten(whole)["fc1.weight"])
