"""A whole member, MPC included, without peers: how it joins, and when it refuses to."""

import pytest
from roles_support import PASSWORD

from opfl_chain.chain import bls
from opfl_chain.chain.bindings.types import Phases
from opfl_chain.chain.keys import SCRYPT_CHEAP, create_bls_key
from opfl_chain.mpc.local import free_addresses
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.roles.member.audits import Judging
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.node import Moment
from opfl_chain.roles.settings import JobUnusable, MemberSettings
from opfl_chain.transport.routes import Response, Route
from opfl_chain.transport.server import HttpServer


@pytest.fixture
def make(rehearsal, tmp_path, monkeypatch):
    """A member's daemon, which does not run by itself. It compiles nothing: no audit comes."""
    monkeypatch.setattr(Judging, "warm", lambda self: None)
    opened = []

    def make(actor, job, key, announce):
        settings = rehearsal.settings(actor, tmp_path, job)
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
    """A member that acts when the test says so."""

    def tick(self):
        step = self.cursor.catch_up()
        self._moment = Moment(step.position, step.target)
        self.act(self._moment)
        self.cursor.catch_up()


def test_a_member_joins_and_announces_each_url_once_also_one_that_it_had_before(rehearsal, make):
    job = rehearsal.create_real_job()
    key = rehearsal.keys[0]
    member = make(rehearsal.members[0], job, key, "https://a.example")
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


def test_a_member_with_another_key_than_it_registered_refuses_to_go_on(rehearsal, make):
    """Its signatures would not count, and it would pay in every round."""
    job = rehearsal.create_real_job()
    other = bls.SecretKey(bytes(31) + b"\5")
    member = make(rehearsal.members[0], job, other, "https://a.example")
    with pytest.raises(JobUnusable, match="registered with another BLS key"):
        member.tick()


def test_account_that_is_not_a_member_is_refused(rehearsal, make):
    with pytest.raises(JobUnusable, match="is not a member of job"):
        make(
            rehearsal.operator, rehearsal.create_real_job(), rehearsal.keys[0], "https://a.example"
        )


def test_a_member_that_comes_after_the_enrolment_has_nothing_to_do(rehearsal, make):
    job = rehearsal.create_real_job()
    member = make(rehearsal.members[0], job, rehearsal.keys[0], "https://a.example")
    rehearsal.mine_past(member.job.enrolment_end)
    member.tick()
    assert member.done
    assert not rehearsal.contracts.jobs.progress(job).joined


def test_a_member_of_a_job_that_cannot_start_gets_its_stake_back(rehearsal, chain, make):
    short = Phases(20, 5, 5, 5, 5, 5, 5, 5)
    job = rehearsal.create_real_job(phases=short, unbonding_delay=36)
    member = make(rehearsal.members[0], job, rehearsal.keys[0], "https://a.example")
    before = rehearsal.balance(member.address)
    member.tick()
    rehearsal.mine_past(member.job.enrolment_end)
    member.tick()
    assert not member.done
    rehearsal.mine_past(chain.rpc.block_number() + 36)
    member.tick()
    assert member.done
    assert before - rehearsal.balance(member.address) < 10**16


def test_a_member_judges_again_with_a_peer_that_lost_what_was_found_and_asks(rehearsal, make):
    """The peer was killed before it wrote the verdict down, and would pay for its silence."""
    job = rehearsal.create_real_job()
    rehearsal.join(job)
    rehearsal.send(
        rehearsal.clients[0], rehearsal.contracts.jobs.enrol(job, b"\1" * 32, value=10**19)
    )
    asked = {"audit": None}
    health = Route("GET", "/health", lambda _: Response.json(asked))
    with HttpServer("127.0.0.1:0", [health]) as peer:
        call = rehearsal.contracts.jobs.announce_endpoint(job, peer.url)
        rehearsal.send(rehearsal.members[1], call)
        member = make(rehearsal.members[0], job, rehearsal.keys[0], "https://a.example")
        round_id, _ = rehearsal.open_round(job)
        rehearsal.commit(round_id, rehearsal.clients[:1])
        rehearsal.publish_beacon(round_id)
        verdict = Verdict.of(set(), {ClientIndex(0): FaultReason.COMMITMENT_MISMATCH})
        member.store.keep_judgement(0, verdict)
        member.tick()
        assert member.address in member.view.attestations(round_id)
        member.tick()
        assert member.health()["audit"] is None, "nobody asks"
        asked["audit"] = f"judge {round_id}"
        member._audits._helping.succeeded(asked["audit"])
        member.tick()
        assert member.health()["audit"] == asked["audit"]
        assert member.store.judgement(0).hash == verdict.hash


def test_a_member_alone_does_not_contradict_what_others_have_decided(rehearsal, chain, make):
    """It knows less than they: the client was audited."""
    job = rehearsal.create_real_job(audit_rate=1 << 64)
    rehearsal.join(job)
    rehearsal.send(
        rehearsal.clients[0], rehearsal.contracts.jobs.enrol(job, b"\1" * 32, value=10**19)
    )
    member = make(rehearsal.members[0], job, rehearsal.keys[0], "https://a.example")
    round_id, _ = rehearsal.open_round(job)
    rehearsal.commit(round_id, rehearsal.clients[:1])
    rehearsal.publish_beacon(round_id)
    rehearsal.attest(round_id, Verdict.of({ClientIndex(0)}, {}), (1, 2))
    rehearsal.mine_past(rehearsal.contracts.jobs.schedule(round_id).attest - 2)
    member.tick()
    assert member.store.judgement(0) is None
    assert member.address not in member.view.attestations(round_id)
