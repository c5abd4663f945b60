"""Seats of suspects: who saw that a meeting failed signs the change, also after a restart."""

from types import SimpleNamespace

import pytest
from seated import World

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.protocol.echo import Common, Signed
from opfl_chain.protocol.meeting import Results
from opfl_chain.roles.member.meetings import MeetingAudits
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.view.view import ChainView

ABORTED, SIGNED = Results.ABORTED, Signed(b"", bytes(65))


@pytest.fixture
def world(proved, tmp_path):
    with World(proved, tmp_path) as world:
        world.open()
        yield world


def note_failure(world, *members):
    """Have members know that a meeting among the present seats has failed."""
    for number in members:
        view = world.member(number).view
        world.member(number).store.keep_failed_meeting(view.epoch, view.seats())


def test_first_suspect_leaves_and_pays_nothing(world):
    note_failure(world, 1, 2)
    view, roster = world.member(1).view, [each.address for each in world.members]
    world.until(lambda: view.epoch == 1, most=40)
    assert list(view.seats()) == [roster[3], roster[1], roster[2]]
    assert view.penalties() == []
    (change,) = view.seat_changes()
    assert (change.left, change.seats) == (roster[0], tuple(roster[:3]))
    for _ in range(5):  # it is not due once more
        world.tick()
        world.player._mine(1)
    assert view.epoch == 1


def test_suspects_leave_one_after_the_other_and_the_last_one_for_good(world):
    view, roster = world.member(1).view, [each.address for each in world.members]
    for epoch in (1, 2, 3):
        note_failure(world, *range(4))
        world.until(lambda epoch=epoch: view.epoch == epoch, most=40)
    assert [each.left for each in view.seat_changes()] == roster[:3]
    assert set(view.seats()) == {roster[0], roster[1], roster[3]}
    assert view.penalties() == []


def test_a_member_that_was_killed_meanwhile_signs_the_change(world):
    note_failure(world, 1, 2)
    world.restart(1)
    world.until(lambda: world.member(2).view.epoch == 1, 1, 2, most=40)


def test_what_one_member_says_changes_no_seat(world):
    note_failure(world, 1)
    for _ in range(20):
        world.tick()
        world.player._mine(1)
    assert world.member(1).view.epoch == 0


@pytest.mark.parametrize(
    ("said", "equivocators", "fault", "failed"),
    [
        ({0: ABORTED, 1: ABORTED, 2: ABORTED}, {}, False, True),
        ({0: b"nonsense", 1: ABORTED, 2: ABORTED}, {}, False, True),
        ({0: None, 1: ABORTED, 2: ABORTED}, {}, True, False),
        ({0: None, 1: ABORTED, 2: ABORTED}, {0: (SIGNED, SIGNED)}, False, False),
    ],
    ids=["all aborted", "one unreadable", "one away", "one said two things"],
)
def test_who_was_away_pays_and_a_meeting_fails_only_if_nobody_was(
    world, said, equivocators, fault, failed
):
    standby, round_ = world.member(3), world.round
    seats = standby.view.seats()
    audits = MeetingAudits(standby.parts, lambda seats: None, join_seconds=1)
    audits._blame(round_, Common(said, equivocators))
    faults = [(seats[0], MemberFault.ABSENCE)] if fault else []
    assert standby.store.faults(round_.opening) == faults
    assert standby.store.has_failed_meeting(0, seats) == failed
    assert not standby.store.has_failed_meeting(1, seats)


def test_who_lost_its_seat_asks_peers_for_answers_by_client(world, monkeypatch):
    """It hands the keys of answers over, also of those that it has not got itself."""
    note_failure(world, 1, 2)
    world.until(lambda: world.member(1).view.epoch == 1, most=40)
    member, client, asked = world.member(0), world.clients[0].address, []
    intake = member.answer_intake
    monkeypatch.setattr(intake, "_requested", lambda _, peer, which: asked.append(which) or b"")
    member.newcomers.hand_over_seat(world.round, [client])
    assert set(asked) == {client}


@pytest.mark.parametrize("waits", [True, False])
def test_after_the_last_round_a_seat_changes_while_audits_are_undecided(world, monkeypatch, waits):
    """Audits inside MPC wait for the standby, and deposits and stakes for them."""
    view = world.member(1).view
    left = [SimpleNamespace(round=view.latest_round().id)] if waits else []
    monkeypatch.setattr(ChainView, "is_closed", True)
    monkeypatch.setattr(ChainView, "undecided", lambda self: left)
    monkeypatch.setattr(Member, "_leave", lambda self, now: None)
    note_failure(world, 1, 2)
    for _ in range(20):
        world.tick()
        world.player._mine(1)
    assert view.epoch == (1 if waits else 0)
