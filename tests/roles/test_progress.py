"""The progress that a daemon reports, and the blocks that it waits for."""

from types import SimpleNamespace

import pytest

from opfl_chain.roles.node import Moment
from opfl_chain.roles.progress import Agenda, Place, Progress
from opfl_chain.system.backoff import Backoff
from opfl_chain.transport.routes import Request, Response, Route

HERE = Place(7, "0xaa", 7)


def report(progress, stirred=False, audit=None, meeting=None):
    return progress.report(stirred, audit, meeting)


@pytest.fixture
def progress():
    progress = Progress()
    progress.settle(HERE, 12)
    return progress


def test_a_daemon_is_busy_until_it_has_acted_once():
    progress = Progress()
    assert report(progress)["busy"] == "starting"
    assert report(progress)["settled_at"] is None
    progress.settle(HERE, 12)
    found = report(progress)
    assert found["busy"] is None and found["next_block"] == 12
    assert found["settled_at"] == {"block": 7, "hash": "0xaa", "head": 7}


@pytest.mark.parametrize(
    ("state", "reason"),
    [({"stirred": True}, "about to act"), ({"audit": "judge 7"}, "judge 7")],
)
def test_a_daemon_with_something_to_do_is_not_settled(progress, state, reason):
    found = report(progress, **state)
    assert found["busy"] == reason and found["settled_at"] is None


def test_a_meeting_to_which_not_all_have_come_keeps_nobody_busy(progress):
    found = report(progress, meeting="judge 7")
    assert found["settled_at"] is not None and found["meeting"] == "judge 7"


def test_a_transaction_that_is_not_mined_is_waited_for_at_the_block_of_the_last_look(progress):
    progress.begin("acting")
    progress.unmined(9, "commit 3")
    found = report(progress, stirred=True)
    assert found["busy"] is None and found["transaction"] == "commit 3"
    assert found["settled_at"] == {"block": None, "hash": None, "head": 9}
    progress.sent()
    assert report(progress)["busy"] == "acting"


def test_a_request_makes_a_daemon_busy_and_counts(progress):
    seen = []

    def handle(request):
        seen.append(report(progress))
        return Response.json({})

    before = report(progress)["activity"]
    progress.counted(Route("GET", "/x", handle)).handler(Request("GET", "/x", {}, {}, b"", "::1"))
    assert seen[0]["busy"] == "answering a request"
    assert report(progress)["busy"] is None
    assert report(progress)["activity"] == before + 2


def test_every_block_that_is_asked_about_and_has_not_come_is_waited_for():
    now = Moment(seen=5, head=7, agenda=Agenda())
    assert now.has_come(7) and now.has_seen(5)
    assert now.agenda.next_block is None
    assert not now.has_come(20)
    assert not now.has_seen(6), "seen when 8 is the last block"
    assert now.agenda.next_block == 8


def test_without_a_roll_nobody_waits_for_the_beacon():
    schedule = SimpleNamespace(beacon=9)
    rolled = SimpleNamespace(roll=object(), seed=None, schedule=schedule)
    now = Moment(seen=5, head=7, agenda=Agenda())
    assert not now.knows_audited(SimpleNamespace(roll=None, seed=None, schedule=schedule))
    assert now.agenda.next_block is None
    assert not now.knows_audited(rolled)
    assert now.agenda.next_block == 11, "then block 9 is seen"
    assert now.knows_audited(SimpleNamespace(roll=object(), seed=b"1", schedule=schedule))
    assert Moment(9, 11).knows_audited(rolled)


def test_failed_duty_is_retried_at_the_next_block():
    agenda = Agenda()
    agenda.begin(30)
    agenda.note(50)
    agenda.again()
    assert agenda.next_block == 31
    agenda.begin(31)
    assert agenda.next_block is None


def test_in_virtual_time_pauses_end_at_blocks():
    agenda = Agenda()
    agenda.begin(30)
    backoff = Backoff(1.0, 8.0, clock=lambda: agenda.head, alarm=agenda.note, aligned=True)
    ends = []
    backoff.failed("delivery")
    for _ in range(5):
        assert not backoff.is_due("delivery")
        ends.append(agenda.next_block)
        agenda.begin(agenda.next_block)
        assert backoff.is_due("delivery")
        backoff.failed("delivery")
    assert ends == [31, 34, 40, 48, 56]
