"""Transitions that anyone may make: who makes which, when, and what is left in the end."""

import pytest
from contract_player import model_hash
from eth_utils.crypto import keccak
from played import Committee, QuietNode

from opfl_chain.adversaries.servers import SERVERS
from opfl_chain.chain.keys import sign_statement
from opfl_chain.chain.terms import budget
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.statements import RoundResult
from opfl_chain.roles.node import Moment
from opfl_chain.roles.progress import Agenda
from opfl_chain.roles.round_driver import STAGGER_BLOCKS, RoundDriver, place_of, turn_of
from opfl_chain.roles.server.server import Server
from opfl_chain.roles.settings import ServerSettings
from opfl_chain.system.backoff import Backoff


@pytest.mark.parametrize("number", range(7))
def test_in_every_round_each_member_has_another_place(number):
    assert sorted(place_of(rank, number) for rank in range(3)) == [0, 1, 2]


def test_another_member_is_first_in_every_round():
    first = [next(r for r in range(3) if place_of(r, n) == 0) for n in range(6)]
    assert first == [0, 1, 2, 0, 1, 2]


def test_first_place_does_not_wait_and_later_places_do():
    assert turn_of(0, 100) == 100
    assert turn_of(2, 100) == 100 + 2 * STAGGER_BLOCKS


def test_pause_grows_with_every_failure_up_to_a_limit():
    now = [0.0]
    backoff = Backoff(first=1.0, last=4.0, clock=lambda: now[0])
    assert backoff.is_due("a")
    for pause in (1.0, 2.0, 4.0, 4.0):
        backoff.failed("a")
        now[0] += pause - 0.01
        assert not backoff.is_due("a") and backoff.is_due("b")
        now[0] += 0.01
        assert backoff.is_due("a")
    backoff.succeeded("a")
    backoff.failed("a")
    now[0] += 1.0
    assert backoff.is_due("a")


class Driven:
    """A job whose rounds a daemon moves on: the first place, unless said otherwise."""

    def __init__(self, player, folder, *, place=0, clients=3, **terms):
        self.player, self.place = player, place
        self.job = player.create_real_job(**terms)
        self.committee = Committee(player, self.job)
        player.join(self.job, player.members)
        if clients:
            player.enrol(self.job, player.clients[:clients])
        self.node = QuietNode(player.settings(player.treasury, folder, self.job))
        self.driver = RoundDriver(self.node)

    def act(self):
        """Act at the present block; return the next one that is waited for."""
        agenda = Agenda()
        step = self.node.cursor.catch_up()
        agenda.begin(step.target)
        self.node.agenda = agenda
        self.driver.act(Moment(step.position, step.target, agenda), self.place)
        self.node.cursor.catch_up()
        return agenda.next_block

    @property
    def round(self):
        return self.node.view.latest_round()

    def decided(self):
        """Have a verdict on the present round, and its result at the members."""
        round_id, player = self.round.id, self.player
        roll = player.roll(round_id, [0, 1, 2])
        player.commit_roll(round_id, roll)
        player.publish_beacon(round_id, roll)
        player.attest(round_id, [0, 1, 2], player.members[:2])
        self.node.cursor.catch_up()
        hashes = keccak(text="sum"), model_hash(1)
        statement = player.of_round(round_id, RoundResult, self.round.verdict_hash, *hashes)
        for box, member in zip(self.committee.boxes, player.members, strict=True):
            signature = sign_statement(member.account, statement, player.domain)
            box.contents[f"/rounds/{round_id}/result"] = {
                "aggregate_hash": "0x" + hashes[0].hex(),
                "model_hash": "0x" + hashes[1].hex(),
                "signature": "0x" + signature.hex(),
            }

    def close(self):
        self.node.close()
        self.committee.__exit__()


@pytest.fixture
def driven(player, tmp_path):
    made = []

    def make(**given):
        made.append(Driven(player, tmp_path / str(len(made)), **given))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_rounds_open_when_enrolment_ends_and_when_the_last_one_is_over(driven, player):
    job = driven()
    end = job.node.job.enrolment_end
    assert job.act() == end and job.round is None
    player.mine_past(end)
    job.act()
    assert job.round.number == 0
    job.decided()
    job.act()
    assert job.round.over == "finalised" and job.round.next_model_hash == model_hash(1)
    job.act()
    assert job.round.number == 1


def test_a_later_place_leaves_it_to_the_one_before_for_some_blocks(driven, player):
    job = driven(place=2)
    end = job.node.job.enrolment_end
    player.mine_past(end)
    assert job.act() == end + 2 * STAGGER_BLOCKS
    assert job.round is None
    player.mine_past(end + 2 * STAGGER_BLOCKS)
    job.act()
    assert job.round is not None


@pytest.mark.parametrize("stage", ["no roll", "undecided", "without a result"])
def test_a_round_that_cannot_end_is_void_after_the_deadline_of_its_stage(driven, player, stage):
    job = driven()
    player.mine_past(job.node.job.enrolment_end)
    job.act()
    deadlines, round_id = job.round.schedule, job.round.id
    last = {
        "no roll": deadlines.roll,
        "undecided": deadlines.attest,
        "without a result": deadlines.finalise,
    }[stage]
    if stage != "no roll":
        roll = player.roll(round_id, [0, 1, 2])
        player.commit_roll(round_id, roll)
    if stage == "without a result":
        player.publish_beacon(round_id, roll)
        player.attest(round_id, [0, 1, 2], player.members[:2])
    player.mine_past(last - 1)
    assert job.act() <= last and job.round.over is None
    player.mine_past(last)
    job.act()
    assert job.round.over == "void" and job.round.number == 0


def test_what_nobody_earned_goes_back_once_the_third_member_cannot_earn_any_more(driven, player):
    job = driven(rounds=1)
    player.mine_past(job.node.job.enrolment_end)
    job.act()
    job.decided()
    job.act()
    assert job.node.view.is_closed
    attest = job.round.schedule.attest
    assert job.act() == attest and not job.node.view.is_refunded
    player.attest(job.round.id, [0, 1, 2], player.members[2:])
    player.mine_past(attest)
    job.act()
    assert job.node.view.is_refunded
    pay = job.node.job.terms.pay
    assert player.contracts.deposits.budget_of(job.job) == 3 * (pay.client + pay.member)
    before = player.rpc.nonce(job.node.address)
    job.act()
    assert player.rpc.nonce(job.node.address) == before, "once"


def test_the_budget_of_a_job_that_never_started_goes_back(driven, player):
    job = driven(clients=0)
    creator = player.rpc.balance(player.operator.address)
    player.mine_past(job.node.job.enrolment_end)
    job.act()
    back = player.rpc.balance(player.operator.address) - creator
    assert back == budget(job.node.job.terms) > ETHER


def serving(job, folder, kind=Server):
    settings = job.player.settings(job.player.treasury, folder, job.job, ServerSettings)
    return kind(settings)


def acted(server):
    step = server.cursor.catch_up()
    server.act(Moment(step.position, step.target))
    server.cursor.catch_up()


def test_a_server_moves_a_job_on_and_is_done_when_the_budget_is_settled(
    driven, player, tmp_path, monkeypatch
):
    job = driven(rounds=1)
    with serving(job, tmp_path / "server") as server:
        monkeypatch.setattr(server.models, "follow", lambda fetch: None)  # the model is made up
        player.mine_past(job.node.job.enrolment_end)
        acted(server)
        job.node.cursor.catch_up()
        job.decided()
        acted(server)
        acted(server)
        assert server.view.is_closed and not server.done
        player.mine_past(server.view.latest_round().schedule.attest)
        acted(server)
        acted(server)
        assert server.done


def test_a_server_that_posts_another_model_hash_is_refused(driven, player, tmp_path):
    job = driven()
    with serving(job, tmp_path / "server", SERVERS["wrong-model-hash"]) as server:
        player.mine_past(job.node.job.enrolment_end)
        acted(server)
        job.node.cursor.catch_up()
        job.decided()
        acted(server)
        assert server.view.latest_round().over is None
    job.act()
    assert job.round.over == "finalised", "whoever comes next posts what was signed"


def test_a_score_belongs_to_a_model_and_not_to_a_round(driven, player, tmp_path):
    """After a reorganisation the round may end with another model."""
    job = driven()
    with serving(job, tmp_path / "server") as server:
        first = server.job.terms.model_hash
        for model, accuracy in ((first, 0.1), (model_hash(1), 0.5), (b"\1" * 32, 0.9)):
            server.state.write("INSERT INTO accuracies VALUES (?, ?)", model, accuracy)
        assert server.health() == {"accuracies": {0: 0.1}}
        player.mine_past(job.node.job.enrolment_end)
        job.act()
        job.decided()
        job.act()
        server.cursor.catch_up()
        assert server.health() == {"accuracies": {0: 0.1, 1: 0.5}}
