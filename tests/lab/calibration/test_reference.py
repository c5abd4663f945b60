"""Reference boundaries shipped with the package."""

import pytest

from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.lab.calibration.reference import NoReference, reference_boundary
from opfl_chain.learning.registry import MODELS, model_named
from opfl_chain.mpc.audit.judge import Rules
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.mpc.session.executable import SPU_VERSION
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.rules.registry import rule_named


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_boundary_for_the_demo_under_the_hash_of_its_policy(model):
    policy = Plan(model=model).policy
    boundary = reference_boundary(policy)
    assert boundary.policy_hash == "0x" + policy.hash.hex()
    assert boundary.coordinates == model_named(model).layout.size
    assert boundary.spu_version == SPU_VERSION
    Rules(policy, boundary, Replays(policy))


def test_fields_without_effect_on_a_step_do_not_change_its_bounds():
    first = reference_boundary(Plan().policy)
    other = reference_boundary(Plan(audit_rate=0.01, seed=7, scheme=Scheme.MPC).policy)
    assert first.policy_hash != other.policy_hash
    assert first.model_copy(update={"policy_hash": other.policy_hash}) == other


def test_another_batch_size_has_other_bounds_and_is_refused():
    policy = default_policy(model_named("lenet-61706"), batch_size=3)
    with pytest.raises(NoReference, match=r"batches of 3 .*opfl calibrate --policy"):
        reference_boundary(policy)


def test_the_paper_s_rule_has_a_boundary_for_the_demo():
    policy = Plan(audit="plain").policy
    boundary = reference_boundary(policy)
    assert (policy.replay.kind, boundary.rule) == ("plain", "paper")
    Rules(policy, boundary, Replays(policy))


def test_a_plain_replay_is_not_judged_by_the_bounds_of_a_guided_one():
    policy = default_policy(model_named("lenet-431080"), rule=rule_named("paper"), batch_size=8)
    with pytest.raises(NoReference, match="plain replay"):
        reference_boundary(policy)
