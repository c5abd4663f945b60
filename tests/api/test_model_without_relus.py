"""A model of one dense layer, calibrated and audited through the public API."""

import pytest
from linf_rule import RULE

import opfl_chain
from opfl_chain.extend import MODELS, RULES, Model, ParameterLayout, dense
from opfl_chain.learning.errors import PolicyUnusable


class Regression(Model):
    name = "regression"
    input_shape = (28, 28, 1)
    classes = 10

    @property
    def layout(self):
        return ParameterLayout(dense("fc", 28 * 28, 10))

    def logits(self, parameters, examples, operations):
        flat = examples.reshape(examples.shape[0], -1)
        return operations.dense(flat, parameters["fc.weight"], parameters["fc.bias"], name="fc")


@pytest.fixture(autouse=True)
def plugged_in():
    with MODELS.plugged_in("regression", Regression), RULES.plugged_in("linf", RULE):
        yield


@pytest.fixture
def data():
    return opfl_chain.load_dataset("synthetic")


def test_plain_replay_judges_it(data):
    policy = opfl_chain.default_policy("regression", rule="linf")
    boundary = opfl_chain.calibrate(policy, data, steps=3, alpha=8).boundary
    batch = data.train.take(slice(1))
    assert opfl_chain.audit_step(policy, boundary, batch).passed
    cheat = opfl_chain.audit_step(policy, boundary, batch, attack="reverse")
    assert not cheat.passed and cheat.causes == ("infinity",)


def test_guided_replay_has_nothing_to_follow(data):
    policy = opfl_chain.default_policy("regression")
    with pytest.raises(PolicyUnusable, match=r"guided.*regression has none: choose a rule with a"):
        opfl_chain.calibrate(policy, data, steps=3)
