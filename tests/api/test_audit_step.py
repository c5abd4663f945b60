"""Arguments of `audit_step`; examples/ and docs/API.md run it."""

import numpy as np
import pytest

import opfl_chain
from opfl_chain.lab.calibration.reference import NoReference
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.errors import UnknownModel
from opfl_chain.protocol.errors import EncodingError

MODEL = "lenet-61706"
BATCH = synthetic_dataset().train.take(slice(8))


def test_step_without_a_reference_boundary_says_how_to_make_one():
    with pytest.raises(NoReference, match=r"with batches of 3 and a guided replay.*calibrate"):
        opfl_chain.audit_step(MODEL, None, BATCH.take(slice(3)))


def test_unknown_model_is_refused():
    with pytest.raises(UnknownModel, match="lenet-5"):
        opfl_chain.audit_step("lenet-5", None, BATCH)


def test_gradient_and_attack_exclude_each_other():
    with pytest.raises(ValueError, match="gradient and attack both define"):
        opfl_chain.audit_step(MODEL, None, BATCH, gradient=np.zeros(3), attack="reverse")


def test_gradient_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\), it must be flat.*\(61706,\)"):
        opfl_chain.audit_step(MODEL, None, BATCH, gradient=np.zeros(3, np.float32))


@pytest.mark.parametrize("name", ["weights", "gradient"])
def test_numbers_that_are_not_finite_are_refused(name):
    values = np.zeros(61706)
    values[7] = np.nan
    with pytest.raises(ValueError, match=rf"{name}\[7\] is nan: all must be finite"):
        opfl_chain.audit_step(MODEL, None, BATCH, **{name: values})


def test_batch_that_is_not_of_the_policy_is_refused_before_anything_runs():
    policy = opfl_chain.default_policy(MODEL, batch_size=8)
    features, labels = np.zeros((8, 28, 28, 1)), np.zeros(8)
    for said, batch in {
        r"features have shape \(9, 28, 28, 1\), the policy says \(8, 28, 28, 1\)": (
            synthetic_dataset().train.take(slice(9))
        ),
        r"labels\[0\] is 10, it must be in \[0, 10\)": (features, labels + 10),
        "is nan": (features * np.nan, labels),
    }.items():
        with pytest.raises(EncodingError, match=said):
            opfl_chain.audit_step(policy, None, batch, progress=lambda *_: pytest.fail("it runs"))


def test_given_gradient_is_judged_by_the_parties_in_their_own_processes():
    seen = []
    verdict = opfl_chain.audit_step(
        MODEL,
        None,
        BATCH,
        gradient=np.zeros(61706, np.float32),
        processes=True,
        progress=lambda activity, done, total: seen.append((activity, done, total)),
    )
    assert not verdict.passed
    assert "quantile" in verdict.causes
    assert [activity for activity, _, _ in seen] == list(verdict.seconds)
    assert seen[0] == ("compiling the replay", 0, 4)
    assert verdict.delivered_bytes > 3 * 8 * 61706


def test_false_labels_are_committed_to_so_that_the_audit_passes():
    assert opfl_chain.audit_step(MODEL, None, BATCH, attack="poison").passed
