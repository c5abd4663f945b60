"""Updates follow the published formulas, and are the same bytes on every backend."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch

from opfl_chain.learning.errors import (
    DenormalsFlushed,
    OptionsInvalid,
    StateInvalid,
    UnknownOptimizer,
    UpdateInvalid,
    UpdateNotFinite,
)
from opfl_chain.learning.layout import Parameter, ParameterLayout, dense
from opfl_chain.learning.optimizers import (
    OPTIMIZERS,
    ModelOptimizer,
    Optimizer,
    OptimizerState,
    optimizer_of,
    state_from_bytes,
    state_to_bytes,
)
from opfl_chain.protocol.documents import Record
from opfl_chain.protocol.policy import AdamW as AdamWRules
from opfl_chain.protocol.policy import Sgd as SgdRules

SIZE = 40_009  # no multiple of a vector register, and enough for torch to use two threads
STEPS = 200
RULES = {
    "sgd": SgdRules(name="sgd", learning_rate=0.05),
    "momentum": SgdRules(name="sgd", learning_rate=0.01, momentum=0.9, weight_decay=1e-4),
    "adamw": AdamWRules(name="adamw", learning_rate=0.003, weight_decay=0.02),
}
# Hashes of the weights after 200 steps with the numbers below: the same on every machine.
HASHES = {
    "sgd": "bfe5c5c7dd456f1f145ea5ce8c48b88b2de4752a2b67dfcaebac2580102498c0",
    "momentum": "c2b81c4d15c076e09ef31d9e12f0c8658025f47d8eee62f20584aab6629c6ceb",
    "adamw": "09ef0febdeb7259aa8e214215a64b809acdf60159267a854185feec8e96707b7",
}


def start() -> np.ndarray:
    return numbers(0) * np.float32(0.3)


@cache
def numbers(step: int) -> np.ndarray:
    """Numbers of all magnitudes, zeros among them, made by exact operations only."""
    words = np.frombuffer(hashlib.shake_256(b"%d" % step).digest(8 * SIZE), "<u4").reshape(2, -1)
    mantissas = words[0].astype(np.float64) * 2.0**-31 - 1.0
    scaled = np.ldexp(mantissas, -(words[1] % 24).astype(np.int32))
    return (scaled * (words[1] % 16 > 0)).astype(np.float32)


def in_numpy(optimizer: Optimizer) -> tuple[OptimizerState, np.ndarray]:
    weights = start()
    state = optimizer.start(weights)
    for step in range(1, STEPS + 1):
        state, weights = optimizer.update(state, weights, numbers(step))
    return state, weights


def in_torch(optimizer: Optimizer) -> tuple[OptimizerState, np.ndarray]:
    weights = torch.tensor(start())
    state = optimizer.start(weights)
    for step in range(1, STEPS + 1):
        state, weights = optimizer.update(state, weights, torch.tensor(numbers(step)))
    averages = tuple(average.numpy() for average in state.averages)
    return OptimizerState(state.step, averages), weights.numpy()


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.usefixtures("threads")
def test_numpy_and_torch_with_one_and_two_threads_give_the_same_bytes(name: str) -> None:
    optimizer = optimizer_of(RULES[name])
    results = [in_numpy(optimizer)]
    for count in (1, 2):
        torch.set_num_threads(count)
        results.append(in_torch(optimizer))
    states = {state_to_bytes(state) for state, _ in results}
    hashes = {hashlib.sha256(weights.tobytes()).hexdigest() for _, weights in results}
    assert len(states) == 1
    assert hashes == {HASHES[name]}


@pytest.mark.parametrize("name", RULES)
def test_updates_are_those_of_torch_up_to_rounding(name: str) -> None:
    rules = RULES[name]
    parameter = torch.nn.Parameter(torch.tensor(start()))
    reference: torch.optim.Optimizer
    if isinstance(rules, SgdRules):
        reference = torch.optim.SGD(
            [parameter], rules.learning_rate, rules.momentum, weight_decay=rules.weight_decay
        )
    else:
        reference = torch.optim.AdamW(
            [parameter],
            rules.learning_rate,
            (rules.beta1, rules.beta2),
            rules.epsilon,
            rules.weight_decay,
        )
    for step in range(1, STEPS + 1):
        parameter.grad = torch.tensor(numbers(step))
        reference.step()
    _, weights = in_numpy(optimizer_of(rules))
    np.testing.assert_allclose(weights, parameter.detach().numpy(), rtol=1e-4, atol=2e-6)


def test_momentum_is_the_formula() -> None:
    optimizer = optimizer_of(
        SgdRules(name="sgd", learning_rate=0.5, momentum=0.75, weight_decay=0.25)
    )
    weights = np.array([8.0, -4.0], np.float32)
    state = optimizer.start(weights)
    state, weights = optimizer.update(state, weights, np.array([1.0, 2.0], np.float32))
    assert (state.step, weights.tolist()) == (1, [6.5, -4.5])
    state, weights = optimizer.update(state, weights, np.array([0.0, 0.0], np.float32))
    assert state.averages[0].tolist() == [0.75 * 3 + 6.5 / 4, 0.75 * 1 - 4.5 / 4]
    assert weights.tolist() == [6.5 - 3.875 / 2, -4.5 + 0.375 / 2]


def test_first_step_of_adamw_is_the_learning_rate_in_the_direction_of_the_gradient() -> None:
    optimizer = optimizer_of(AdamWRules(name="adamw", learning_rate=0.1, weight_decay=0.5))
    weights = np.array([1.0, 1.0, 1.0], np.float32)
    gradient = np.array([3.0, -1e-3, 0.0], np.float32)
    _, updated = optimizer.update(optimizer.start(weights), weights, gradient)
    np.testing.assert_allclose(updated, [0.95 - 0.1, 0.95 + 0.1, 0.95], rtol=1e-4)


@pytest.mark.parametrize("name", RULES)
def test_update_leaves_what_it_was_given(name: str) -> None:
    optimizer, weights, gradient = optimizer_of(RULES[name]), start(), numbers(1)
    state, _ = optimizer.update(optimizer.start(weights), weights, gradient)
    before = state_to_bytes(state)
    optimizer.update(state, weights, gradient)
    assert np.array_equal(weights, start())
    assert np.array_equal(gradient, numbers(1))
    assert state_to_bytes(state) == before


@pytest.mark.parametrize("name", RULES)
def test_a_run_goes_on_from_the_bytes_of_its_state(name: str) -> None:
    optimizer, weights = optimizer_of(RULES[name]), start()
    state, weights = optimizer.update(optimizer.start(weights), weights, numbers(1))
    restored = state_from_bytes(state_to_bytes(state))
    assert restored.step == 1
    _, expected = optimizer.update(state, weights, numbers(2))
    _, found = optimizer.update(restored, weights, numbers(2))
    assert np.array_equal(found, expected)


def test_bytes_that_are_no_state_are_refused() -> None:
    optimizer = optimizer_of(RULES["adamw"])
    data = state_to_bytes(optimizer.start(np.ones(3, np.float32)))
    with pytest.raises(StateInvalid, match="at least 22 bytes, these are 5"):
        state_from_bytes(data[:5])
    with pytest.raises(StateInvalid, match="has 46 bytes, these are 45"):
        state_from_bytes(data[:-1])
    with pytest.raises(StateInvalid, match="starts with b'XPFO'"):
        state_from_bytes(b"X" + data[1:])


def test_mismatched_vectors_are_refused() -> None:
    optimizer, ones = optimizer_of(RULES["momentum"]), np.ones(4, np.float32)
    state = optimizer.start(ones)
    with pytest.raises(UpdateInvalid, match=r"gradient has shape \(5,\), the weights \(4,\)"):
        optimizer.update(state, ones, np.ones(5, np.float32))
    with pytest.raises(UpdateInvalid, match="gradient has dtype float64, it must be float32"):
        optimizer.update(state, ones, np.ones(4))
    with pytest.raises(UpdateInvalid, match="state has 1 averages, this optimizer keeps 2"):
        optimizer_of(RULES["adamw"]).update(state, ones, ones)


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_an_update_that_is_not_finite_is_refused(name: str, value: float) -> None:
    rules = RULES[name].model_copy(update={"learning_rate": 1e3})
    optimizer, ones = optimizer_of(rules), np.ones(4, np.float32)
    gradient = np.array([0, 0, value, 0], np.float32)
    with pytest.raises(UpdateInvalid, match="leaves the range of float32"):
        optimizer.update(optimizer.start(ones), ones, gradient)


def test_a_thread_that_flushes_denormals_is_refused() -> None:
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush denormals")
    try:
        optimizer, ones = optimizer_of(RULES["sgd"]), np.ones(4, np.float32)
        with pytest.raises(DenormalsFlushed):
            optimizer.update(optimizer.start(ones), ones, ones)
    finally:
        torch.set_flush_denormal(False)


def test_an_optimizer_is_found_by_name_and_takes_the_options_of_the_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dataclass
    class SignDescent:
        """An optimizer as a plug-in has it."""

        learning_rate: float

        def start(self, weights):
            return OptimizerState(0, ())

        def update(self, state, weights, gradient):
            step = np.sign(gradient) * np.float32(self.learning_rate)
            return OptimizerState(state.step + 1, ()), weights - step

    class Rules(Record):
        name: str
        learning_rate: float
        options: dict = {}  # noqa: RUF012

    monkeypatch.setitem(OPTIMIZERS._builtin, "sign", SignDescent)
    optimizer, ones = optimizer_of(Rules(name="sign", learning_rate=0.5)), np.ones(2, np.float32)
    _, weights = optimizer.update(optimizer.start(ones), ones, ones)
    assert weights.tolist() == [0.5, 0.5]
    with pytest.raises(OptionsInvalid, match=r"sign has no option 'beta'.*: learning_rate\."):
        optimizer_of(Rules(name="sign", learning_rate=0.5, options={"beta": 1}))
    with pytest.raises(UnknownOptimizer, match="Known optimizers: adamw, sgd, sign"):
        optimizer_of(Rules(name="lion", learning_rate=0.5))


def test_only_trainable_weights_are_updated_and_averaged() -> None:
    layout = ParameterLayout(
        (Parameter("a", (2,), 1.0), Parameter("b", (3,), 1.0, trainable=False), *dense("c", 1, 1))
    )
    optimizer = ModelOptimizer(optimizer_of(RULES["momentum"]), layout)
    weights, gradient = np.arange(1, 8, dtype=np.float32), np.ones(4, np.float32)
    state, updated = optimizer.update(optimizer.start(weights), weights, gradient)
    assert [average.size for average in state.averages] == [4]
    assert (updated == weights).tolist() == [False, False, True, True, True, False, False]
    with pytest.raises(UpdateInvalid, match="7 coordinates, the model trains 4 of its 7"):
        optimizer.update(state, weights, weights)
    with np.errstate(all="ignore"), pytest.raises(UpdateNotFinite):
        optimizer.update(state, weights, gradient * np.float32(np.inf))
    with pytest.raises(UpdateInvalid, match=r"shape \(4,\), the model has 7"):
        optimizer.start(gradient)
