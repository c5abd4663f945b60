"""A package outside the tree adds a model, an attack, a rule and data; a job runs with them."""

import json
import re
from pathlib import Path

import pytest
from plugin_package import install_plugins, run_with

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return install_plugins(tmp_path_factory.mktemp("plugins"))


@pytest.fixture(scope="module")
def job(installed, tmp_path_factory):
    ran = run_with(installed, HERE / "job_with_plugins.py", tmp_path_factory.mktemp("job"))
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_policy_names_the_plugins_that_it_uses(job):
    assert set(job["plugins"]) == {"model:perceptron", "rule:linf"}
    assert job["rule"] == "linf"


def test_clients_train_on_the_data_of_a_plugin(job):
    assert job["dataset"] == "mirrored"


def test_rule_of_a_plugin_judges_clients_with_a_model_of_a_plugin(job):
    assert job["verdicts"]["client-0"] == job["verdicts"]["client-1"] == ["PASSED"]
    assert job["verdicts"]["client-2"] == ["OUTSIDE"]
    assert job["holds"]


def test_attack_of_a_plugin_is_charged(job):
    assert job["charges"] == {"client-2": "OUTSIDE"}
    assert {name for name, lost in job["lost_wei"].items() if lost} == {"client-2"}


def test_step_with_an_operation_of_a_plugin_is_proved(installed):
    ran = run_with(installed, "-c", "from opfl_extras.new_operation import main; main()")
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(r"honest: passed\namplify:1.01: failed: .*\n", ran.stdout)


def test_policy_names_operations_of_plugins(installed):
    code = (
        "from opfl_chain import default_policy as of; print(*of('squares', rule='proved').plugins)"
    )
    assert run_with(installed, "-c", code).stdout == "model:squares operation:square\n"


def test_plugin_that_fails_to_load_is_named_with_its_package_and_cause(installed):
    code = "from opfl_chain.rules.registry import rule_named; rule_named('broken')"
    ran = run_with(installed, "-c", code)
    assert ran.returncode != 0
    assert "package opfl-extras 1.2: entry point 'broken' of group opfl_chain.rules" in ran.stderr
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in ran.stderr


def test_broken_plugin_harms_nobody_else(installed):
    code = "from opfl_chain.rules.registry import RULES; print(RULES.names(), RULES['linf'].name)"
    names = ["paper", "guided", "proved", "broken", "linf"]
    assert run_with(installed, "-c", code).stdout == f"{names} linf\n"
