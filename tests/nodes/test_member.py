"""A whole member, MPC included, which nobody comes to: how it joins, and when it refuses to."""

import pytest
from node_stage import PASSWORD

from opfl_chain.chain import bls
from opfl_chain.chain.bindings.types import Phases
from opfl_chain.chain.keys import create_bls_key
from opfl_chain.chain.keystore import SCRYPT_CHEAP
from opfl_chain.mpc.local_committee import free_addresses
from opfl_chain.nodes.errors import JobUnusable
from opfl_chain.nodes.judging import Judging
from opfl_chain.nodes.member import Member
from opfl_chain.nodes.node import Moment
from opfl_chain.nodes.settings import MemberSettings


@pytest.fixture
def make(stage, tmp_path, monkeypatch):
    """A member's daemon, which does not run by itself. It compiles nothing: no audit comes."""
    monkeypatch.setattr(Judging, "warm", lambda self: None)
    opened = []

    def make(actor, job, key, announce):
        settings = stage.settings(actor, tmp_path, job)
        keystore = tmp_path / f"bls-{len(opened)}.json"
        create_bls_key(keystore, PASSWORD, key=key, scrypt_n=SCRYPT_CHEAP)
        member = Ticking(
            MemberSettings.model_validate(
                {
                    **settings.model_dump(),
                    "bls_keystore": keystore,
                    "mpc_addresses": free_addresses(3),
                    "announce": announce,
                }
            )
        )
        opened.append(member)
        return member

    yield make
    for member in opened:
        member.close()


class Ticking(Member):
    """Acts when it is told to."""

    def tick(self):
        step = self.cursor.catch_up()
        self._moment = Moment(step.position, step.target)
        self.act(self._moment)
        self.cursor.catch_up()


def test_a_member_joins_and_announces_each_url_once_also_one_that_it_had_before(stage, make):
    job = stage.create_real_job()
    key = stage.keys[0]
    member = make(stage.members[0], job, key, "https://a.example")
    member.tick()
    member.tick()
    assert member.view.has_joined(member.address)
    assert member.view.announcements(member.address) == 1
    for count, url in enumerate(["https://b.example", "https://a.example"], start=2):
        member._settings = member._settings.model_copy(update={"announce": url})
        member.tick()
        member.tick()
        assert member.view.endpoints()[member.address] == url
        assert member.view.announcements(member.address) == count


def test_a_member_with_another_key_than_it_registered_refuses_to_go_on(stage, make):
    """Its signatures would not count, and it would pay in every round."""
    job = stage.create_real_job()
    other = bls.SecretKey(bytes(31) + b"\5")
    member = make(stage.members[0], job, other, "https://a.example")
    with pytest.raises(JobUnusable, match="registered with another BLS key"):
        member.tick()


def test_who_is_no_member_is_told_so(stage, make):
    with pytest.raises(JobUnusable, match="is no member of job"):
        make(stage.operator, stage.create_real_job(), stage.keys[0], "https://a.example")


def test_a_member_that_comes_after_the_enrolment_has_nothing_to_do(stage, make):
    job = stage.create_real_job()
    member = make(stage.members[0], job, stage.keys[0], "https://a.example")
    stage.mine_past(member.job.enrolment_end)
    member.tick()
    assert member.done
    assert not stage.contracts.jobs.progress(job).joined


def test_a_member_of_a_job_that_cannot_start_gets_its_stake_back(stage, chain, make):
    short = Phases(20, 5, 5, 5, 5, 5, 5, 5)
    job = stage.create_real_job(phases=short, unbonding_delay=36)
    member = make(stage.members[0], job, stage.keys[0], "https://a.example")
    before = stage.balance(member.address)
    member.tick()
    stage.mine_past(member.job.enrolment_end)
    member.tick()
    assert not member.done
    stage.mine_past(chain.rpc.block_number() + 36)
    member.tick()
    assert member.done
    assert before - stage.balance(member.address) < 10**16
