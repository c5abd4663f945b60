"""Choice of the audit that a member joins, and of meetings that it leaves. Peers are made up."""

import threading
import time
from contextlib import contextmanager

import pytest

from opfl_chain.mpc.session.errors import PeerLost, ProgramFailed, RuntimeDied
from opfl_chain.roles.member.sessions import SessionRunner


class Session:
    sent_bytes = 5


class MadeUpParty:
    """Peers come to the audits that are named in `there`; to others nobody comes."""

    pid = None

    def __init__(self):
        self.there = set()
        self.joined = []
        self._interrupted = threading.Event()

    @contextmanager
    def session(self, audit, **seconds):
        self._interrupted.clear()
        self.joined.append(audit)
        if audit not in self.there:
            self._interrupted.wait(60)
            raise RuntimeDied(0, "was killed by SIGKILL", "")
        yield Session()

    def interrupt(self):
        self._interrupted.set()

    def close(self):
        self.interrupt()


@pytest.fixture
def party():
    return MadeUpParty()


@pytest.fixture
def runner(party):
    runner = SessionRunner(party, 5.0, lambda: None, lambda: None)
    runner.begin(1)
    yield runner
    runner.close()


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def nothing(session):
    pass


def test_a_member_that_waits_for_its_peers_is_at_a_meeting_and_in_no_session(runner):
    assert runner.offer("judge 1", nothing)
    assert (runner.meeting, runner.session, runner.busy_with) == ("judge 1", None, "judge 1")


def test_a_session_with_all_peers_is_not_left_for_anything(runner, party):
    party.there = {"judge 1"}
    go_on = threading.Event()
    runner.offer("judge 1", lambda session: go_on.wait(60))
    until(lambda: runner.session == "judge 1")
    runner.begin(2)
    runner.offer("judge 2", nothing)
    runner.leave_what_is_not_wanted()
    assert runner.session == "judge 1" and runner.meeting is None
    go_on.set()
    until(lambda: runner.busy_with is None)


def test_a_meeting_is_left_for_what_is_more_important(runner, party):
    runner.offer("once more 1", nothing)
    until(lambda: party.joined == ["once more 1"])
    runner.begin(2)
    runner.offer("judge 2", nothing)
    runner.offer("once more 1", nothing)
    runner.leave_what_is_not_wanted()
    assert runner.meeting == "judge 2"


def test_a_meeting_is_kept_that_is_still_the_most_important(runner, party):
    runner.offer("judge 2", nothing)
    until(lambda: party.joined == ["judge 2"])
    runner.begin(2)
    runner.offer("judge 2", nothing)
    runner.offer("once more 1", nothing)
    runner.leave_what_is_not_wanted()
    assert runner.meeting == "judge 2" and party.joined == ["judge 2"]


def test_a_meeting_that_nobody_wants_any_more_is_left(runner, party):
    runner.offer("judge 1", nothing)
    until(lambda: party.joined)
    runner.begin(2)
    runner.leave_what_is_not_wanted()
    assert runner.busy_with is None


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [(ProgramFailed("the replay", "it divides by zero"), False), (PeerLost(1, "host:1"), True)],
)
def test_an_audit_that_fails_by_itself_is_tried_again_at_the_next_block(
    runner, party, error, goes_on
):
    """One whose peer was lost is tried at once: that says nothing of the audit."""
    party.there = {"judge 1"}

    def fail(session):
        raise error

    for _ in range(3):
        assert runner.offer("judge 1", fail)
        until(lambda: runner.busy_with is None)
    assert runner.offer("judge 1", fail) is goes_on
    until(lambda: runner.busy_with is None)
    runner.begin(2)
    assert runner.offer("judge 1", nothing)
