"""A job whose policy names plug-ins is refused where they are missing or differ."""

import pytest

from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.registry import MODELS
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.roles.job import Job
from opfl_chain.roles.settings import JobUnusable


def other_lenet():
    return LENET_61706


@pytest.fixture
def job(player, monkeypatch):
    """A job with a policy that names a plug-in, of which nothing is used."""
    named = default_policy("lenet-61706", batch_size=8, audit_rate=0.5)
    named = named.model_copy(update={"plugins": {"model:other-lenet": "ab" * 32}})
    bounds = reference_boundary(named.model_copy(update={"plugins": {}}))
    hashed = bounds.model_copy(update={"policy_hash": "0x" + named.hash.hex()})
    monkeypatch.setattr(player, "policy", named, raising=False)
    monkeypatch.setattr(player, "boundary", hashed, raising=False)
    return player.create_real_job()


def test_job_with_a_missing_plugin_is_refused(chain, player, job):
    with pytest.raises(JobUnusable, match=r"model:other-lenet.*no installed package.*install the"):
        Job.find(chain.rpc, player.deployment, job)


def test_job_with_another_source_of_a_plugin_is_refused(chain, player, job):
    with (
        MODELS.plugged_in("other-lenet", other_lenet),
        pytest.raises(JobUnusable, match=r"digest abab.*which is installed, has [0-9a-f]{64}"),
    ):
        Job.find(chain.rpc, player.deployment, job)
