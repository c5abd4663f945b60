"""A policy names the plug-ins that it uses, and they must be installed with the same source."""

import numpy as np
import pytest
from linf_rule import RULE

import opfl_chain
from opfl_chain.lab.calibration.run import CalibrationRun
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.optimizers import OPTIMIZERS, Sgd
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.rules.evidence import Observation, Replay
from opfl_chain.rules.registry import (
    RULES,
    PluginDiffers,
    PluginMissing,
    PluginUnnamed,
    documents_from_json,
    require_all_named,
    require_plugins,
    rule_for,
)
from opfl_chain.system.plugins import LocalPlugin, PluginError

LINF = "rule:linf"


class Lion(Sgd):
    """An optimizer of this process."""


@pytest.fixture
def policy():
    with RULES.plugged_in("linf", RULE):
        yield default_policy("lenet-61706", rule="linf")


def boundary_of(policy):
    words = np.zeros(LENET_61706.layout.size, np.int64)
    return RULE.calibrate(policy, [Observation(policy, words, Replay(words))], 1.0)


def test_default_policy_names_its_plugins(policy):
    assert policy.plugins == {LINF: RULES.plugin("linf").digest}
    assert rule_for(policy) is RULE
    require_plugins(policy)
    require_all_named(policy, boundary_of(policy).rule)


def test_default_policy_without_plugins_names_none():
    assert default_policy("lenet-61706").plugins == {}


def test_optimizer_of_a_plugin_is_named():
    optimizer = {"name": "lion", "learning_rate": 0.1, "options": {"momentum": 0.5}}
    with OPTIMIZERS.plugged_in("lion", Lion):
        policy = default_policy("lenet-61706", optimizer=optimizer)
        assert policy.plugins == {"optimizer:lion": OPTIMIZERS.plugin("lion").digest}
        require_plugins(policy)
    with pytest.raises(PluginMissing, match="no installed package has an entry point 'lion'"):
        require_plugins(policy)


def test_optimizer_of_a_plugin_needs_no_options():
    with OPTIMIZERS.plugged_in("lion", Lion):
        policy = default_policy("lenet-61706", optimizer={"name": "lion", "learning_rate": 0.1})
    assert policy.optimizer.options == {}


def test_plugin_with_another_source_is_refused(policy):
    other = policy.model_copy(update={"plugins": {LINF: "ab" * 32}})
    found = RULES.plugin("linf").digest
    with pytest.raises(PluginDiffers, match=f"{LINF} with source digest abab.*has {found}:"):
        require_plugins(other)


def test_plugin_that_the_policy_does_not_name_is_refused(policy):
    unnamed = policy.model_copy(update={"plugins": {}})
    with pytest.raises(PluginUnnamed, match=f"uses the plug-in {LINF} without naming it"):
        require_all_named(unnamed, boundary_of(policy).rule)


def test_unnamed_rule_of_a_boundary_is_not_even_loaded(policy, monkeypatch):
    data = boundary_of(policy).canonical_json
    unnamed = policy.model_copy(update={"plugins": {}}).canonical_json
    monkeypatch.delitem(RULES._loaded, "linf")
    monkeypatch.setattr(LocalPlugin, "load", lambda plugin: pytest.fail("it was loaded"))
    with pytest.raises(PluginUnnamed, match=f"uses the plug-in {LINF} without naming it"):
        documents_from_json(unnamed, data)
    monkeypatch.setitem(RULES._loaded, "linf", RULE)


def test_documents_of_named_plugins_are_read(policy):
    boundary = boundary_of(policy)
    read = documents_from_json(policy.canonical_json, boundary.canonical_json)
    assert read == (policy, boundary)


@pytest.mark.parametrize("plugins", [{}, {LINF: "ab" * 32}], ids=["unnamed", "other source"])
def test_nothing_is_audited_or_calibrated_with_other_plugins(policy, plugins, tmp_path):
    other = policy.model_copy(update={"plugins": plugins})
    examples = synthetic_dataset(train=1, test=1)
    with pytest.raises(PluginError, match=LINF):
        opfl_chain.audit_step(other, boundary_of(policy), examples.train)
    with pytest.raises(PluginError, match=LINF):
        CalibrationRun(other, RULE, examples, tmp_path)
