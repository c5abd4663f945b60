"""Members that agree on a roll, audit, sum and charge: real daemons in one process, real proofs."""

from dataclasses import replace

import pytest
from seated import ANSWER, CONTRIBUTION, TickingMember, World, flipped, spoilt

from opfl_chain.adversaries.members import (
    AnswersFalsely,
    Equivocates,
    Few,
    Frames,
    RevealsOthers,
    SumsFalsely,
)
from opfl_chain.chain.bindings.types import ChargeStatus, MemberFault
from opfl_chain.protocol.audit_exchange import Reveal
from opfl_chain.protocol.echo import Slot, echo_of
from opfl_chain.protocol.published_answers import decode_rounds
from opfl_chain.protocol.roll import Listed
from opfl_chain.protocol.verdict import Outcome, Verdict
from opfl_chain.roles.member.hearings import Hearing
from opfl_chain.roles.member.meetings import MeetingAudits
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.proved_audits import ANSWERS_FILE, ProvedAudits

REVEALS = Slot.REVEAL, echo_of(Slot.REVEAL)


@pytest.fixture
def world(proved, tmp_path):
    with World(proved, tmp_path) as world:
        world.open()
        yield world


def rolled(world):
    return world.round.roll is not None


def on_roll(world):
    return {
        client.address
        for client in world.clients
        if world.round.roll.commitments.get(world.member(0).view.client(client.address).index)
    }


def deliver_all(world):
    for client in world.clients:
        assert client.deliver() == [200, 200, 200]


class TestRoll:
    def test_who_delivered_to_two_is_on_it_and_who_delivered_to_one_is_not(self, world):
        first, second, third = world.clients
        first.deliver()
        second.deliver(seats=(1, 2))
        third.deliver(seats=(2,))
        world.until(lambda: rolled(world))
        assert on_roll(world) == {first.address, second.address}
        for member in world.members[:3]:
            round_ = world.round
            entry = member.store.roll(round_.opening)[1]
            assert member.gradient_intake.has(round_, second.address, entry.content_hash)

    def test_a_bundle_that_does_not_open_for_one_member_is_not_on_it(self, world):
        deliver_all_but = world.clients[:2]
        for client in deliver_all_but:
            client.deliver()
        bad = world.clients[2]
        bundle = spoilt(bad.bundle(CONTRIBUTION), seat=1)
        assert bad.deliver(bundle=bundle) == [200, 200, 200]
        world.until(lambda: rolled(world))
        assert on_roll(world) == {client.address for client in deliver_all_but}

    def test_without_one_member_the_others_agree_when_its_time_is_over(self, world):
        deliver_all(world)
        world.until(lambda: rolled(world), 0, 1)
        assert len(on_roll(world)) == 3


def test_who_has_an_undecided_audit_is_no_candidate(proved, tmp_path):
    """Its audit is held after the next round opened: the chain calls it active at that block.

    The chain has the root of the roll alone, and one member has lost the roll: its peers have it.
    """
    with World(proved, tmp_path, public_roll=False) as world:
        world.open()
        deliver_all(world)
        world.until(lambda: world.round.seed is not None)
        silent, *others = world.clients
        for client in others:
            client.deliver(ANSWER)
        world.until(lambda: world.round.verdict_hash is not None)
        first, view = world.round, world.member(1).view
        assert not view.charges()
        world.player.void(first.id, first.schedule.finalise)
        second = world.open()
        assert second.opening != first.opening and world.round.number == 1
        world.member(2).state.write("DELETE FROM rolls WHERE opening = ?", first.opening)
        assert silent.deliver() == [410] * 3
        for client in others:
            assert client.deliver() == [200] * 3
        world.until(lambda: rolled(world))
        for member in world.members[:3]:
            listed = {entry.address for entry in member.store.roll(second.opening)}
            assert listed == {client.address for client in others}


class TestIntake:
    def test_bundles_that_do_not_count_are_refused_and_nothing_is_kept(self, world):
        own, other, _ = world.clients
        bundle = own.bundle(CONTRIBUTION)
        right = own.sign(CONTRIBUTION, bundle)
        assert own.deliver(signature=other.sign(CONTRIBUTION, bundle)) == [400] * 3
        elsewhere = own.sign(CONTRIBUTION, bundle, opening=b"\1" * 32)
        assert own.deliver(signature=elsewhere) == [400] * 3
        assert own.post(CONTRIBUTION, 0, bundle.encode()[:-1], right) == 400
        forged = replace(bundle, knowledge=flipped(bundle.knowledge))
        assert own.deliver(bundle=forged) == [400] * 3
        assert own.post(ANSWER, 0, own.bundle(ANSWER).encode(), right) == 400
        assert world.member(0).gradient_intake.hashes(world.round) == {}

    def test_a_third_bundle_of_a_client_is_refused(self, world):
        client = world.clients[0]
        bundles = [
            client.bundle(CONTRIBUTION),
            *(spoilt(client.bundle(CONTRIBUTION), seat) for seat in (0, 1)),
        ]
        found = [client.deliver(seats=(0,), bundle=bundle) for bundle in bundles]
        assert found == [[200], [200], [409]]
        assert client.deliver(seats=(0,), bundle=bundles[0]) == [200], "known ones are confirmed"

    def test_after_the_list_nothing_new_is_taken(self, world):
        early, late, _ = world.clients
        early.deliver()
        world.player.mine_past(world.round.schedule.deliver)
        world.tick(0)
        assert late.deliver(seats=(0,)) == [410]


class TestAudits:
    @pytest.fixture
    def audited(self, world):
        """A settled round in which everybody is on the roll and audited."""
        deliver_all(world)
        world.until(lambda: world.round.seed is not None)
        return world

    def answer(self, world, *clients):
        for client in clients or world.clients:
            assert client.deliver(ANSWER) == [200, 200, 200]

    def passed(self, world):
        view = world.member(0).view
        passed = Verdict.decode(view.decided_passes(world.round)).passed
        return {c.address for c in world.clients if view.client(c.address).index in passed}

    def test_who_answers_passes_and_the_round_is_final(self, audited):
        self.answer(audited)
        audited.until(lambda: audited.member(1).view.round(0).over is not None)
        assert audited.member(1).view.round(0).over == "finalised"
        assert self.passed(audited) == {client.address for client in audited.clients}
        assert audited.member(1).view.charges() == audited.member(1).view.penalties() == []

    def test_an_answer_to_one_member_reaches_all(self, audited):
        first, *others = audited.clients
        self.answer(audited, *others)
        first.deliver(ANSWER, seats=(1,))
        audited.until(lambda: audited.round.verdict_hash is not None)
        assert first.address in self.passed(audited)

    def test_who_was_away_answers_later_and_loses_nothing(self, audited):
        late, *others = audited.clients
        self.answer(audited, *others)
        view = audited.member(1).view
        audited.until(lambda: view.charges(), blocks=4)
        assert late.address not in self.passed(audited)
        assert late.deliver(ANSWER) == [200, 200, 200]
        audited.until(lambda: not view.undecided(), blocks=4)
        (charge,) = view.charges()
        assert (charge.client, charge.status) == (late.address, ChargeStatus.ACQUITTED)

    def test_who_never_answers_pays_in_full_after_the_response_window(self, audited):
        silent, *others = audited.clients
        self.answer(audited, *others)
        view, response = audited.member(1).view, audited.round.schedule.response
        audited.until(lambda: view.charges() and not view.undecided(), blocks=4)
        (charge,) = view.charges()
        assert (charge.client, charge.outcome) == (silent.address, Outcome.UNANSWERED)
        assert charge.decided_at > response
        assert charge.held == audited.member(1).job.terms.penalties.client

    def test_who_answers_each_member_differently_is_decided_all_the_same(self, audited):
        """Each list names another answer; then all have two of them, and list the smaller one."""
        split, *others = audited.clients
        self.answer(audited, *others)
        for seat in range(3):
            other = split.bundle(ANSWER, seed=bytes([seat + 1]) * 32)
            assert split.deliver(ANSWER, seats=(seat,), bundle=other) == [200]
        view = audited.member(1).view
        audited.until(lambda: view.charges() and not view.undecided(), blocks=4, most=80)
        (charge,) = view.charges()
        assert (charge.client, charge.status) == (split.address, ChargeStatus.ACQUITTED)

    def test_who_keeps_signing_other_answers_pays_after_the_response_window(self, audited):
        """Two answers to each of two members, and none is the same; the third one sides with it."""
        split, *others = audited.clients
        self.answer(audited, *others)
        for seat in (0, 1):
            for number in (1, 2):
                other = split.bundle(ANSWER, seed=bytes([2 * seat + number]) * 32)
                assert split.deliver(ANSWER, seats=(seat,), bundle=other) == [200]
        audited.member(2).answers._list = lambda *_: Listed({}).encode()
        view, response = audited.member(1).view, audited.round.schedule.response
        audited.until(lambda: view.charges() and not view.undecided(), blocks=4, most=120)
        (charge,) = view.charges()
        assert (charge.client, charge.outcome) == (split.address, Outcome.UNANSWERED)
        assert charge.decided_at > response

    def test_an_absent_member_stops_nobody_and_loses_its_seat(self, audited):
        self.answer(audited)
        view = audited.member(1).view
        audited.until(lambda: audited.round.over is not None, 0, 1, 3, blocks=2)
        assert audited.round.over == "finalised"
        audited.until(lambda: view.epoch == 1, 0, 1, 3)
        absent = audited.member(2).address
        assert {(each.member, each.fault) for each in view.penalties()} >= {
            (absent, MemberFault.ABSENCE)
        }
        assert view.seats()[2] == audited.member(3).address
        assert not view.charges()


def test_a_replay_inside_mpc_is_repeated_before_it_costs_anything(world, monkeypatch):
    """A proof that fails has failed for good; a replay may reject an honest step now and then."""
    member, opening = world.member(0), world.round.opening
    for client, kind, needed in zip(
        world.clients, (ProvedAudits, MeetingAudits), (1, 2), strict=False
    ):
        monkeypatch.setattr(member._audits, "hearings_needed", kind.hearings_needed)
        for attempt in range(1, needed + 1):
            assert member.store.outcome(opening, client.address) is None
            hearing = Hearing(world.round, attempt, (client.address,), 0, 1)
            member._keep(hearing, {client.address: Outcome.OUTSIDE})
        assert member.store.outcome(opening, client.address) is Outcome.OUTSIDE


class TestMessages:
    def test_a_message_of_another_is_refused(self, world):
        member = world.member(0)
        world.player.mine_past(world.round.schedule.deliver)
        world.clients[0].deliver()
        world.tick(0)
        own = member.messages.own(world.round, 1)
        peers, path = member.peers, f"/rounds/{world.round.id}/messages/1/2"
        with pytest.raises(Exception, match="not signed by seat 2"):
            peers.post_to_member(world.member(1).address, path, own.body, own.signature)

    def test_slots_of_sessions_to_come_are_refused(self, world):
        member, path = world.member(0), f"/rounds/{world.round.id}/messages/4097/0"
        with pytest.raises(Exception, match="no session"):
            member.peers.post_to_member(world.member(1).address, path, b"body", b"\1" * 65)


def test_the_beacon_message_is_that_of_the_contract_whatever_a_node_says(world, monkeypatch):
    deliver_all(world)
    world.until(lambda: rolled(world))
    member, beacon = world.member(0), world.member(0).job.contracts.beacon
    wanted = world.player.contracts.beacon.message(world.round.id)

    class LyingRpc:
        def call(self, to, data, *, block=None):
            raise AssertionError("a node must not be asked what to sign")

    with monkeypatch.context() as lying:
        lying.setattr(beacon, "_rpc", LyingRpc())
        member._beacon._signed(world.round)
    assert member.store.partial(world.round.opening)[0] == wanted


class TwoFaced(TickingMember):
    MESSAGES = Equivocates.MESSAGES


class Flipping(TickingMember):
    PROVED_AUDITS = AnswersFalsely.PROVED_AUDITS


class RevealingOthers(TickingMember):
    PROVED_AUDITS = RevealsOthers.PROVED_AUDITS


class MiscountingSum(TickingMember):
    SUMS = SumsFalsely.SUMS


class Framing(TickingMember):
    ROLLS = Frames.ROLLS
    PROVED_AUDITS = Frames.PROVED_AUDITS


class Picking(TickingMember):
    ROLLS = Few.ROLLS


class _RevealsTwoThings(Messages):
    def tell(self, round_, slot, own):
        """Tell the last peer no words, before anybody tells it the right ones."""
        _, member = self.peers(round_)[-1]
        if slot == Slot.REVEAL and not self._store.has_told(round_.opening, slot, member):
            body = Reveal(self.seat(round_), {}).encode()
            path = f"/rounds/{round_.id}/messages/{slot}/{self.seat(round_)}"
            signature = self._node.sign(self.statement(round_, slot, body))
            self._node.peers.post_to_member(member, path, body, signature)
            self._store.keep_told(round_.opening, slot, member)
        super().tell(round_, slot, own)


class TwoWorded(TickingMember):
    MESSAGES = _RevealsTwoThings


def published(world, number):
    path = world.member(number).settings.state / ANSWERS_FILE
    return decode_rounds(path.read_text())[0].messages


def test_nobody_echoes_words_that_are_those_of_the_reports(world):
    deliver_all(world)
    world.until(lambda: world.round.seed is not None)
    for client in world.clients:
        client.deliver(ANSWER)
    opening, seats = world.round.opening, [each.address for each in world.members[:3]]
    world.until(lambda: all(each.store.verdict(opening) is not None for each in world.members[:3]))
    for own, member in enumerate(world.members[:3]):
        peers = [peer for seat, peer in enumerate(seats) if seat != own]
        told = [[member.store.has_told(opening, slot, peer) for peer in peers] for slot in REVEALS]
        assert told == [[True, True], [False, False]]
        assert member.store.first_message(opening, REVEALS[1], seats[own]) is not None
        assert member.store.concluded(opening, REVEALS[0]) == {own}
        assert len(published(world, own)) == 6


def test_words_of_a_report_count_and_are_published_though_their_author_says_other_ones(
    proved, tmp_path
):
    with World(proved, tmp_path, cheats={0: TwoWorded}) as world:
        world.open()
        deliver_all(world)
        world.until(lambda: world.round.seed is not None)
        for client in world.clients:
            client.deliver(ANSWER)
        view = world.member(1).view
        world.until(lambda: view.round(0).over is not None)
        assert view.round(0).over == "finalised" and not view.charges()
        for number in (1, 2):
            said = published(world, number)
            assert len(said) == 6, "no referee was asked"
            assert len(Reveal.decode(said[0, Slot.REVEAL].body, 0).answers) == 3
        world.until(lambda: view.epoch == 1)
        assert {(each.member, each.fault) for each in view.penalties()} == {
            (world.member(0).address, MemberFault.EQUIVOCATION)
        }


@pytest.mark.parametrize(
    ("cheat", "fault"),
    [
        (TwoFaced, MemberFault.EQUIVOCATION),
        (RevealingOthers, MemberFault.FALSEHOOD),
        (Flipping, MemberFault.FALSEHOOD),
        (MiscountingSum, MemberFault.FALSEHOOD),
        (Framing, MemberFault.FALSEHOOD),
        (Picking, None),
    ],
)
def test_one_bad_member_harms_nobody_but_itself(proved, tmp_path, cheat, fault):
    with World(proved, tmp_path, cheats={0: cheat}) as world:
        world.open()
        deliver_all(world)
        world.until(lambda: world.round.seed is not None)
        assert len(on_roll(world)) == 3
        for client in world.clients:
            client.deliver(ANSWER)
        view = world.member(1).view
        world.until(lambda: view.round(0).over is not None)
        assert view.round(0).over == "finalised" and not view.charges()
        assert len(Verdict.decode(view.decided_passes(view.round(0))).passed) == 3
        if fault is not None:
            world.until(lambda: view.epoch == 1)
            assert {(each.member, each.fault) for each in view.penalties()} == {
                (world.member(0).address, fault)
            }
            assert view.penalties()[0].amount == world.member(1).job.terms.member_stake
        else:
            assert view.penalties() == []
