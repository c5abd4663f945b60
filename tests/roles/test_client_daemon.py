"""A client against a real chain and members that only take its bundles."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from contract_player import PlayedRoll
from played import Committee, JobPlayer

from opfl_chain.adversaries.clients import conduct_named
from opfl_chain.chain import bls
from opfl_chain.chain.bindings.types import ChargeStatus, ClientStatus, Outcome, Role
from opfl_chain.chain.bindings.types import RollEntry as Evidence
from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.terms import PAY
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.protocol.bundle import check_bundle, context
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.errors import BundleError, DoesNotOpen
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.inputs import is_input_of_round
from opfl_chain.protocol.randomness import is_audited, seed_of_signature
from opfl_chain.protocol.roll import Roll, RollEntry
from opfl_chain.protocol.statements import Answer, Contribution
from opfl_chain.protocol.unsealing import open_answer, open_contribution
from opfl_chain.roles.client import client as client_module
from opfl_chain.roles.client.client import Client
from opfl_chain.roles.client.store import ClientStore
from opfl_chain.roles.node import Moment
from opfl_chain.roles.progress import Agenda
from opfl_chain.roles.settings import ClientSettings, DataSettings, JobUnusable

CONTRIBUTION, ANSWER = BundleKind.CONTRIBUTION, BundleKind.ANSWER
LAYOUT = model_of(JobPlayer.policy).layout
WEIGHTS = LAYOUT.flatten(initial_parameters(LAYOUT, JobPlayer.policy.seeds.model))


class Scene:
    """One client under test, as client 0, and two made-up ones."""

    def __init__(self, player, chain, folder, *, cheat=None, **terms):
        self.player, self.chain = player, chain
        self.cheat, self.folder = cheat, folder
        self.job = player.create_real_job(**terms)
        self.committee = Committee(player, self.job)
        standbys = player.contracts.jobs.terms(self.job).standbys
        player.join(self.job, player.roster[: 3 + min(1, len(standbys))])
        self.boxes = self.committee.boxes
        for box in self.boxes:
            weights = WEIGHTS.astype("<f4").tobytes()
            model = player.contracts.jobs.terms(self.job).model_hash
            box.contents[f"/models/0x{model.hex()}"] = weights
        self.client = self.started()
        self.act()
        player.enrol(self.job, player.clients[1:3])

    def started(self):
        """A client with the state that an earlier one left."""
        actor = self.player.clients[0]
        data = DataSettings(dataset="synthetic", parts=3)
        settings = self.player.settings(actor, self.folder, self.job, ClientSettings, data=data)
        client = Client(settings, conduct_named(self.cheat) if self.cheat else None)
        # Pauses between attempts are those of virtual time, with blocks for seconds.
        client._delivering._clock = lambda: float(self.chain.rpc.block_number())
        return client

    def restart(self):
        self.client.close()
        self.client = self.started()

    def act(self):
        """Act at the present block; return the next one that the client waits for."""
        step = self.client.cursor.catch_up()
        agenda = Agenda()
        agenda.begin(step.target)
        self.client.agenda = agenda
        self.client.act(Moment(step.position, step.target, agenda))
        return agenda.next_block

    def open(self):
        self.round_id = self.player.open_round(self.job)
        self.act()

    @property
    def round(self):
        return self.client.view.latest_round()

    @property
    def address(self):
        return self.client.address

    def sent(self, kind, seat=0):
        return self.boxes[seat].bundles(kind)

    def context(self, kind, round_=None):
        round_ = round_ or self.round
        separator = self.player.domain.separator
        return context(separator, round_.id, round_.opening, self.address, kind)

    def rolled(self, *, audited=True, indices=(0, 1, 2)):
        """Put what the client delivered on the roll, or not, and let a beacon select it, or not.

        The contents of others are made up, so that there is such a roll.
        """
        player, made = self.player, self.sent(CONTRIBUTION, 1) or self.sent(CONTRIBUTION)
        own, rate = made[-1] if made else None, self.client.job.terms.audit_rate
        opening, seats = player.opening(self.round_id), player.contracts.rounds.seats_of
        for attempt in range(10_000):
            roll = self._roll(indices, own, attempt)
            partials = player.partials(self.round_id, opening, roll.root, seats(self.round_id))
            total = bls.aggregate_signatures(list(partials.values())).eip2537()
            if is_audited(seed_of_signature(total), self.address, rate) == audited:
                break
        self.roll = PlayedRoll(roll, {})
        if own is not None and 0 in indices:
            bundle, signature = own
            self.roll.evidence[self.address] = Evidence(
                bundle.commitment, bundle.rest_hash, roll.proof(0), signature
            )
        player.commit_roll(self.round_id, self.roll)
        player.publish_beacon(self.round_id, self.roll)

    def _roll(self, indices, own, attempt):
        entries = []
        for index in indices:
            content = commitment = keccak256(bytes([index]), attempt.to_bytes(4, "big"))
            if index == 0 and own is not None:
                commitment, content = own[0].commitment, own[0].content_hash
            address = self.player.clients[index].address
            entries.append(RollEntry(index, address, commitment, content))
        return Roll.of(entries)

    def close(self):
        self.client.close()
        self.committee.__exit__()


@pytest.fixture
def scene(player, chain, tmp_path):
    scenes = []

    def make(**given):
        scenes.append(Scene(player, chain, tmp_path / str(len(scenes)), **given))
        return scenes[-1]

    yield make
    for each in scenes:
        each.close()


# --- contributions


def test_a_contribution_reaches_all_seats_and_opens_for_each(scene, player):
    job = scene()
    job.open()
    packages = []
    for seat, box in enumerate(job.boxes):
        ((bundle, signature),) = box.bundles(CONTRIBUTION)
        statement = Contribution(job.job, 0, job.round.opening, job.address, bundle.content_hash)
        assert signer_of(statement, player.domain, signature) == job.address
        check_bundle(bundle, job.context(CONTRIBUTION), box.expected)
        packages.append(
            open_contribution(bundle, seat, box.key, job.context(CONTRIBUTION), box.expected)
        )
    assert len({package.leaf_hashes for package in packages}) == 1
    assert job.act() is not None
    assert all(len(box.posted) == 1 for box in job.boxes), "once is enough"
    assert not job.sent(ANSWER)


def test_a_seat_that_does_not_take_it_is_tried_again_until_the_phase_ends(scene, chain):
    job = scene()
    job.boxes[1].refuses = True
    job.open()
    first = job.act()
    assert first <= chain.rpc.block_number() + 10, "the next attempt is on the agenda"
    chain.mine(3)
    job.act()
    again = len(job.boxes[1].posted)
    assert again >= 2 and len(job.boxes[0].posted) == 1
    assert len({body for _, _, body, _ in job.boxes[1].posted}) == 1, "the same bytes every time"
    job.player.mine_past(job.round.schedule.deliver)
    job.act()
    assert len(job.boxes[1].posted) == again


def test_a_client_without_its_data_set_trains_on_nothing(scene, player):
    job = scene()
    job.client.view.client = lambda address: SimpleNamespace(root=b"\1" * 32, index=0)
    round_id = player.open_round(job.job)
    assert round_id
    with pytest.raises(JobUnusable, match="Restore both as they were"):
        job.act()


def test_a_client_that_is_not_active_when_a_round_opens_sits_it_out(scene, player):
    job = scene()
    job.client.view.client_status = lambda address, block=None: (
        ClientStatus.ACTIVE if block is None else ClientStatus.SUSPENDED
    )
    job.open()
    assert not job.boxes[0].posted


def test_a_client_that_would_fail_its_own_audit_delivers_nothing_and_says_why(scene):
    job = scene()
    make = job.client.contributor.make
    job.client.contributor.make = lambda *given: replace(make(*given), refusal="too far")
    job.open()
    assert not any(box.posted for box in job.boxes)
    assert job.client.health()["phase"] == "sitting round 0 out: too far"
    job.rolled(indices=(0, 1, 2))
    job.act()
    assert not any(box.posted for box in job.boxes), "whatever stands on the roll"


# --- audits


def test_an_audited_client_answers_and_members_open_its_input(scene, player):
    job = scene()
    job.open()
    job.rolled()
    job.act()
    for seat, box in enumerate(job.boxes):
        ((bundle, signature),) = box.bundles(ANSWER)
        statement = Answer(job.job, 0, job.round.opening, job.address, bundle.content_hash)
        assert signer_of(statement, player.domain, signature) == job.address
        check_bundle(bundle, job.context(ANSWER), box.expected)
        given, advice, proof = open_answer(bundle, seat, box.key, job.context(ANSWER), box.expected)
        root = job.client.view.client(job.address).root
        assert is_input_of_round(root, 0, given.commitment, given.proof)
        assert advice is not None and proof is None
    job.act()
    assert all(len(box.bundles(ANSWER)) == 1 for box in job.boxes)


@pytest.mark.parametrize(
    ("audited", "indices"), [(False, (0, 1, 2)), (True, (1, 2))], ids=["spared", "off the roll"]
)
def test_nothing_of_the_input_leaves_a_client_that_is_not_asked(scene, audited, indices):
    job = scene()
    job.open()
    job.rolled(audited=audited, indices=indices)
    job.act()
    assert not any(box.bundles(ANSWER) for box in job.boxes)


def test_without_a_beacon_everyone_on_the_roll_answers(scene, player):
    job = scene()
    job.open()
    player.commit_roll(job.round_id, player.roll(job.round_id, [0, 1, 2]))
    waits_for = job.act()
    assert not job.sent(ANSWER) and waits_for <= job.round.schedule.beacon
    player.mine_past(job.round.schedule.beacon)
    job.act()
    assert job.sent(ANSWER)


def test_a_killed_client_comes_back_within_the_response_window_and_answers(scene, player, chain):
    """It was away when its round was judged and its deposit held, and loses nothing."""
    job = scene()
    job.open()
    job.rolled()  # from here on it is away
    player.attest(job.round_id, [1, 2], player.members[:2])
    player.hold(job.round_id, job.roll, [1, 2], 0)
    player.finalise(job.round_id)
    player.mine_past(player.schedule(job.round_id).attest + 2)
    assert not job.sent(ANSWER)
    job.restart()
    job.act()
    assert all(len(box.bundles(ANSWER)) == 1 for box in job.boxes)
    first = job.sent(ANSWER)[0][0].content_hash
    for box in job.boxes:  # forgotten by the client, as if it was killed before it wrote it down
        box.refuses = False
    job.client.state.write("DELETE FROM delivered")
    job.restart()
    job.act()
    assert {bundle.content_hash for bundle, _ in job.sent(ANSWER)} == {first}


@pytest.mark.parametrize("end", ["passed", "acquitted", "charged", "void", "window"])
def test_a_client_answers_until_its_audit_is_decided(scene, player, end):
    job = scene()
    job.boxes[2].refuses = True
    job.open()
    job.rolled()
    job.act()
    before = len(job.boxes[2].posted)
    assert before
    schedule = player.schedule(job.round_id)
    if end == "void":
        player.void(job.round_id, schedule.attest)
    elif end == "passed":
        player.attest(job.round_id, [0, 1], player.members[:2])
    else:
        player.attest(job.round_id, [1, 2], player.members[:2])
        player.hold(job.round_id, job.roll, [1, 2], 0)
    if end == "acquitted":
        player.acquit(job.round_id, 0)
    elif end == "charged":
        player.charge(job.round_id, 0, Outcome.OUTSIDE)
    player.mine_past(schedule.response - 1 if end != "window" else schedule.response)
    job.act()
    assert len(job.boxes[2].posted) == before


def test_a_held_client_still_answers_whoever_has_not_heard_it(scene, player):
    job = scene()
    job.boxes[2].refuses = True
    job.open()
    job.rolled()
    job.act()
    before = len(job.boxes[2].bundles(ANSWER))
    player.attest(job.round_id, [1, 2], player.members[:2])
    player.hold(job.round_id, job.roll, [1, 2], 0)
    player.mine_past(player.schedule(job.round_id).response - 2)
    job.act()
    assert len(job.boxes[2].bundles(ANSWER)) > before


# --- reorganisations


def reopened(job, depth_beyond=1):
    """Open the round anew on another branch, and act."""
    depth = job.chain.rpc.block_number() - job.round.opened_at + depth_beyond
    job.player.reopened(job.job, job.chain, depth)
    job.act()


def test_a_round_that_is_opened_again_gets_a_new_contribution(scene, player, chain):
    """Fresh randomness, another signature, and not a byte of the old one."""
    job = scene()
    player.mine_past(job.client.job.enrolment_end)
    chain.mine(1)
    job.open()
    first = job.round
    ((old, signature),) = job.sent(CONTRIBUTION)
    job.boxes[0].posted.clear()
    reopened(job)
    assert job.round.id == first.id and job.round.opening != first.opening
    ((new, _),) = job.sent(CONTRIBUTION)
    assert new.commitment != old.commitment and new.ephemeral != old.ephemeral
    assert not set(new.envelopes) & set(old.envelopes)
    opened = [
        open_contribution(
            bundle, 0, job.boxes[0].key, job.context(CONTRIBUTION, round_), job.boxes[0].expected
        )
        for bundle, round_ in ((old, first), (new, job.round))
    ]
    assert opened[0].held[0].sent != opened[1].held[0].sent, "other shares of the same gradient"
    stale = Contribution(job.job, 0, job.round.opening, job.address, old.content_hash)
    assert signer_of(stale, player.domain, signature) != job.address
    job.restart()
    job.act()
    assert all(bundle == new for bundle, _ in job.sent(CONTRIBUTION))


@pytest.mark.parametrize("kept_by", ["number", "opening"])
def test_kept_by_number_the_contribution_of_the_other_branch_would_be_sent(
    scene, player, chain, monkeypatch, kept_by
):
    """The attack `reorg`: the branch has another model, and the kept gradient is of the first."""

    def by_number(store, opening):
        row = store._state.one("SELECT opening FROM contributions ORDER BY rowid LIMIT 1")
        return kept(store, row[0]) if row else None

    kept = ClientStore.contribution
    job = scene()
    player.mine_past(job.client.job.enrolment_end)
    chain.mine(1)
    job.open()
    trained = []
    make = job.client.contributor.make
    monkeypatch.setattr(
        job.client.contributor, "make", lambda *given: trained.append(given[1]) or make(*given)
    )
    if kept_by == "number":
        monkeypatch.setattr(ClientStore, "contribution", by_number)
    reopened(job)
    assert trained == ([job.round.opening] if kept_by == "opening" else [])


def test_an_answer_is_for_one_opening_and_its_input_shares_are_those_that_were_committed(
    scene, player, chain
):
    job = scene()
    player.mine_past(job.client.job.enrolment_end)
    chain.mine(1)
    job.open()
    job.rolled()
    job.act()
    first = job.round
    ((old, _),) = job.sent(ANSWER)
    job.boxes[0].posted.clear()
    reopened(job)
    assert not job.sent(ANSWER), "nobody has asked yet"
    roll = player.roll(job.round_id, [0, 1, 2])
    player.commit_roll(job.round_id, roll)
    player.mine_past(player.schedule(job.round_id).beacon)
    job.act()
    ((new, _),) = job.sent(ANSWER)
    inputs, advised = [], []
    for bundle, round_ in ((old, first), (new, job.round)):
        box = job.boxes[0]
        given, advice, _ = open_answer(
            bundle, 0, box.key, job.context(ANSWER, round_), box.expected
        )
        inputs.append(given.package)
        advised.append(advice)
    assert inputs[0] == inputs[1]
    assert advised[0].held[0].sent != advised[1].held[0].sent
    assert old.content_hash != new.content_hash


# --- money


def test_a_client_claims_its_pay_and_leaves_with_its_deposit(scene, player):
    job = scene(rounds=1)
    before = player.rpc.balance(job.address)
    job.open()
    job.rolled(audited=False)
    player.attest(job.round_id, [0, 1, 2], player.members)
    player.finalise(job.round_id)
    job.act()
    job.act()
    until, _ = job.client.view.unbonding(job.address, Role.CLIENT)
    player.mine_past(until)
    job.act()
    assert job.client.done
    assert job.client.view.claims(job.address) == {0: PAY.client}
    gained = player.rpc.balance(job.address) - before - job.client.job.terms.client_deposit
    assert PAY.client - ETHER // 1000 < gained <= PAY.client


def test_a_long_job_pays_now_and_then(scene, player, monkeypatch):
    monkeypatch.setattr(client_module, "_CLAIM_EVERY", 1)
    job = scene(rounds=3)
    job.open()
    job.rolled(audited=False)
    player.attest(job.round_id, [0, 1, 2], player.members)
    player.finalise(job.round_id)
    job.act()
    assert job.client.view.claims(job.address) == {}
    player.open_round(job.job)
    job.act()
    job.client.cursor.catch_up()
    assert job.client.view.claims(job.address) == {0: PAY.client}


def test_a_client_waits_for_the_decision_of_its_audit_before_it_withdraws(scene, player):
    job = scene(rounds=1)
    job.open()
    job.rolled()
    job.act()
    player.attest(job.round_id, [1, 2], player.members)
    player.hold(job.round_id, job.roll, [1, 2], 0)
    player.finalise(job.round_id)
    job.act()
    job.act()
    until, _ = job.client.view.unbonding(job.address, Role.CLIENT)
    player.mine_past(until)
    job.act()
    assert not job.client.done
    assert job.client.health()["phase"] == "waiting for the decision of an audit"
    player.acquit(job.round_id, 0)
    job.act()
    assert job.client.done
    deposits = player.contracts.deposits
    assert deposits.account(job.job, Role.CLIENT, job.address).balance == 0


def test_in_a_job_without_a_standby_a_client_frees_what_nobody_decides(scene, player):
    job = scene(rounds=1, standbys=False)
    job.open()
    job.rolled()
    player.attest(job.round_id, [1, 2], player.members)
    player.hold(job.round_id, job.roll, [1, 2], 0)
    job.act()
    (held,) = job.client.view.undecided()
    due = held.held_at + job.client.job.terms.unlock_delay
    player.mine_past(due - 2)
    assert job.act() <= due
    assert job.client.view.undecided()
    player.mine_past(due)
    job.act()
    job.act()
    assert not job.client.view.undecided()
    assert job.client.view.charge(job.round, job.address).status is ChargeStatus.UNLOCKED


# --- cheats


def test_an_answer_that_is_withheld_never_comes(scene):
    job = scene(cheat="withhold-answer")
    job.open()
    job.rolled()
    job.act()
    assert job.sent(CONTRIBUTION) and not job.sent(ANSWER)


@pytest.mark.parametrize(
    ("cheat", "contributions", "answers"),
    [
        ("withhold-shares", (), ()),
        ("evade", (0, 1, 2), (0, 1)),
        ("split", (0, 1), (0,)),
        ("amplify:10+evade", (0, 1, 2), (0, 1)),
    ],
)
def test_a_cheat_chooses_who_gets_its_bundles(scene, cheat, contributions, answers):
    job = scene(cheat=cheat)
    job.open()
    job.rolled()
    job.act()
    got = [
        tuple(seat for seat, box in enumerate(job.boxes) if box.bundles(kind))
        for kind in (CONTRIBUTION, ANSWER)
    ]
    assert got == [contributions, answers]


def test_high_s_is_the_same_signature_to_all_but_contracts_and_us(scene, player):
    job = scene(cheat="high-s")
    job.open()
    bundle, signature = job.sent(CONTRIBUTION)[0]
    statement = Contribution(job.job, 0, job.round.opening, job.address, bundle.content_hash)
    assert signer_of(statement, player.domain, signature) is None
    assert int.from_bytes(signature[32:64], "big") > 1 << 255


def test_shares_that_do_not_open_are_seen_by_whoever_holds_them(scene):
    job = scene(cheat="spoil-shares")
    job.open()
    bundle, _ = job.sent(CONTRIBUTION)[0]
    place = job.context(CONTRIBUTION)
    check_bundle(bundle, place, job.boxes[0].expected)
    with pytest.raises(DoesNotOpen):
        open_contribution(bundle, 0, job.boxes[0].key, place, job.boxes[0].expected)
    for seat in (1, 2):
        open_contribution(bundle, seat, job.boxes[seat].key, place, job.boxes[seat].expected)


def test_another_gradient_under_the_leaf_hashes_does_not_open(scene):
    """Masks hash what they hide, so that no component of another gradient is the same."""
    job = scene(cheat="wrong-opening")
    job.open()
    for seat in range(3):
        box = job.boxes[seat]
        bundle, _ = box.bundles(CONTRIBUTION)[0]
        with pytest.raises(DoesNotOpen, match=f"component {seat} does not match its leaf"):
            open_contribution(bundle, seat, box.key, job.context(CONTRIBUTION), box.expected)


def test_another_commitment_over_the_leaf_hashes_is_refused_at_once(scene):
    job = scene(cheat="wrong-commitment")
    job.open()
    bundle, _ = job.sent(CONTRIBUTION)[0]
    with pytest.raises(BundleError, match="leaf hashes do not match the gradient commitment"):
        check_bundle(bundle, job.context(CONTRIBUTION), job.boxes[0].expected)


def test_another_input_is_not_that_of_the_round(scene):
    job = scene(cheat="other-input")
    job.open()
    job.rolled()
    job.act()
    bundle, _ = job.sent(ANSWER)[0]
    box, root = job.boxes[0], job.client.view.client(job.address).root
    given, _, _ = open_answer(bundle, 0, box.key, job.context(ANSWER), box.expected)
    assert not is_input_of_round(root, 0, given.commitment, given.proof)
    assert is_input_of_round(root, 1, given.commitment, given.proof)


@pytest.mark.parametrize(
    ("cheat", "kind"), [("two-contributions", CONTRIBUTION), ("two-answers", ANSWER)]
)
def test_two_bundles_of_one_kind_both_have_a_signature(scene, player, cheat, kind):
    job = scene(cheat=cheat)
    job.open()
    job.rolled()
    job.act()
    (first, signed), (second, other) = job.sent(kind, 0)[0], job.sent(kind, 1)[0]
    assert first.content_hash != second.content_hash
    statement = Contribution if kind is CONTRIBUTION else Answer
    for bundle, signature in ((first, signed), (second, other)):
        said = statement(job.job, 0, job.round.opening, job.address, bundle.content_hash)
        assert signer_of(said, player.domain, signature) == job.address


def test_an_answer_with_a_spoilt_envelope_opens_for_two(scene):
    job = scene(cheat="spoil-answer")
    job.open()
    job.rolled()
    job.act()
    bundle, _ = job.sent(ANSWER)[0]
    opened = []
    for seat, box in enumerate(job.boxes):
        try:
            open_answer(bundle, seat, box.key, job.context(ANSWER), box.expected)
            opened.append(seat)
        except DoesNotOpen:
            continue
    assert opened == [1, 2]
