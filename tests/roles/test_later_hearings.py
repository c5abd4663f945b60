"""Hearings after the verdict: what one bad member says or keeps back charges nobody honest."""

import pytest
from seated import ANSWER, PHASES, World

from opfl_chain.chain.bindings.types import ChargeStatus, MemberFault
from opfl_chain.protocol.echo import Slot, echo_of, slot_number
from opfl_chain.protocol.roll import Listed
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.member.attempts import attempt_start
from opfl_chain.roles.member.store import MemberStore

BAD, STANDBY = 2, 3
"""The number of the bad member, and of the standby that takes its seat."""


@pytest.fixture
def world(proved, tmp_path):
    with World(proved, tmp_path, rounds=1) as world:
        world.open()
        for client in world.clients:
            assert client.deliver() == [200, 200, 200]
        yield world


class TestAnswerOfWhichOneListIsMissing:
    """A client answers within the window, and only one honest list of answers comes in time."""

    def heard_without_member_1(self, world):
        """Play the hearing after the window: one list is empty, another one comes too late.

        The bad member signs that nobody answered.
        """
        late, *others = world.clients
        world.until(lambda: world.round.seed is not None)
        for client in others:
            client.deliver(ANSWER)
        member, round_ = world.member(0), world.round
        world.until(lambda: member.moment.head >= round_.schedule.attest + 20, blocks=4)
        assert late.deliver(ANSWER) == [200, 200, 200]
        world.member(BAD).answers._list = lambda *_: Listed({}).encode()
        start = attempt_start(member, round_, 2)
        assert start > round_.schedule.response > member.moment.head
        world.until(lambda: member.moment.head >= start, blocks=1)
        world.until(lambda: member.store.is_heard(round_.opening, 2), 0, BAD)
        world.member(BAD).store.keep_outcome(round_.opening, late.address, Outcome.UNANSWERED)
        return late

    def test_client_is_not_charged_and_acquitted_in_the_next_hearing(self, world):
        late = self.heard_without_member_1(world)
        assert world.member(0).store.outcome(world.round.opening, late.address) is None
        world.until(lambda: not world.member(1).view.undecided(), blocks=2)
        (charge,) = world.member(1).view.charges()
        assert charge.status is ChargeStatus.ACQUITTED

    def test_client_pays_if_members_sign_what_they_know_to_be_false(self, world, monkeypatch):
        """The defence off: whoever agreed on no answer signs that there was none."""
        monkeypatch.setattr(world.member(0).answers, "all_here", lambda *_: False)
        self.heard_without_member_1(world)
        world.until(lambda: not world.member(1).view.undecided(), blocks=2)
        (charge,) = world.member(1).view.charges()
        assert (charge.status, charge.outcome) == (ChargeStatus.CHARGED, Outcome.UNANSWERED)


class TestWordsOfAPredecessor:
    """A member says garbage beforehand in the slots of a hearing, and then loses its seat."""

    def penalties_after_poisoning(self, world):
        bad, view = world.member(BAD), world.member(1).view
        bad.sign_beacon = lambda *_: None
        world.until(lambda: world.round.roll is not None)
        round_ = world.round
        for step in (Slot.ANSWERS, Slot.REPORT, Slot.REVEAL):
            said = slot_number(step, 1)
            for slot in (said, echo_of(said)):
                body = b"garbage in slot %d" % slot
                signature = bad.sign(bad.messages.statement(round_, slot, body))
                path = f"/rounds/{round_.id}/messages/{slot}/{BAD}"
                for peer in (0, 1, STANDBY):
                    address = world.member(peer).address
                    bad.peers.post_to_member(address, path, body, signature)
        world.until(lambda: view.epoch == 1, 0, 1, STANDBY, blocks=2)
        assert view.seats()[BAD] == world.member(STANDBY).address
        late, *others = world.clients
        for client in others:
            client.deliver(ANSWER)
        world.until(lambda: view.charges(), 0, 1, STANDBY, blocks=2)
        late.deliver(ANSWER)
        successor = world.member(STANDBY).address

        def paid():
            return {(each.member, each.fault) for each in view.penalties()}

        def successor_paid():
            return successor in {member for member, _ in paid()}

        world.until(lambda: successor_paid() or not view.undecided(), 0, 1, STANDBY, blocks=2)
        for _ in range(8):
            world.tick(0, 1, STANDBY)
            world.player._mine(2)
        world.catch_up()
        return paid(), view.charges()[0].status

    def test_successor_is_heard_and_does_not_pay(self, world):
        paid, charged = self.penalties_after_poisoning(world)
        assert {member for member, _ in paid} == {world.member(BAD).address}
        assert charged is ChargeStatus.ACQUITTED

    def test_successor_pays_if_messages_belong_to_seats(self, world):
        """The defence off: what the predecessor said is taken for what the successor says."""
        bad, successor = world.member(BAD).address, world.member(STANDBY).address
        for member in world.members:
            by_author = member.store.messages
            member.store.messages = lambda opening, slot, author, by_author=by_author: by_author(
                opening, slot, bad if author == successor else author
            )
        paid, _ = self.penalties_after_poisoning(world)
        assert (successor, MemberFault.ABSENCE) in paid


class TestMembersThatWereAllHeldUp:
    """All stand still while a hearing begins, and go on at one block after most of its parts."""

    def penalties(self, world):
        late, *others = world.clients
        world.until(lambda: world.round.seed is not None)
        for client in others:
            client.deliver(ANSWER)
        round_, view = world.round, world.member(1).view
        world.until(lambda: view.charges(), blocks=2)
        late.deliver(ANSWER)
        world.player.mine_past(attempt_start(world.member(0), round_, 1) + PHASES.attest * 3 // 4)
        world.until(lambda: not view.undecided(), blocks=2)
        (charge,) = view.charges()
        assert charge.status is ChargeStatus.ACQUITTED
        return [each.fault for each in view.penalties()]

    def test_blame_nobody(self, world):
        assert self.penalties(world) == []

    def test_pay_for_each_other_if_who_comes_late_says_who_was_away(self, world, monkeypatch):
        """The defence off: each concludes before it hears the others, and two miss the first."""
        monkeypatch.setattr(MemberStore, "is_late", lambda *_: False)
        assert MemberFault.ABSENCE in self.penalties(world)
