"""Reports of daemons to the clock, and the next block that follows from them."""

from dataclasses import replace

import pytest

from opfl_chain.jobs.localnet.clock import DaemonReport, hindrance, is_unchanged, next_height

HEAD = 50
HASHES = {HEAD: "0xaa", HEAD - 2: "0xbb"}
SETTLED = DaemonReport(activity=3, head=HEAD, block=HEAD, hash="0xaa", next_block=70)


def why(**reports):
    return hindrance(reports, HEAD, HASHES)


def test_daemons_settled_at_the_last_block_wait_for_the_next():
    assert why(server=SETTLED, client=replace(SETTLED, transaction="commit 3")) is None


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (replace(SETTLED, busy="acting"), "client is busy: acting"),
        (DaemonReport.of(None), "client is busy: its health does not answer"),
        (replace(SETTLED, head=49), "client has settled at block 49, but the chain is at 50"),
        (replace(SETTLED, hash="0xcc"), "client has not seen that block 50 was replaced"),
    ],
)
def test_busy_or_late_daemon_holds_the_clock_and_is_named(report, reason):
    assert why(server=SETTLED, client=report) == reason


def test_members_waiting_for_an_absent_one_do_not_hold_the_clock():
    at = replace(SETTLED, meeting="judge 7")
    assert why(a=at, b=at, c=SETTLED) is None
    assert why(a=at, b=at, c=replace(SETTLED, meeting="judge 8")) is None


def test_members_who_are_all_there_meet_before_the_next_block():
    at = replace(SETTLED, meeting="judge 7")
    assert why(a=at, b=at, c=at) == "all members are about to meet for 'judge 7'"


def test_a_daemon_that_was_made_busy_between_two_looks_shows_in_its_count():
    """It was asked, then got a message of one that was asked later, and both look settled."""
    first = {"a": SETTLED, "b": SETTLED}
    assert is_unchanged(first, first)
    assert not is_unchanged(first, {"a": replace(SETTLED, activity=5), "b": SETTLED})
    assert not is_unchanged(first, {"a": SETTLED})


def test_blocks_are_skipped_up_to_the_first_at_which_anyone_has_something_to_do():
    reports = {"a": SETTLED, "b": replace(SETTLED, next_block=61)}
    assert next_height(reports, HEAD, 0) == 61
    assert next_height(reports, HEAD, 0, planned=[55]) == 55


def test_a_transaction_gets_the_next_block():
    reports = {"a": SETTLED, "b": replace(SETTLED, transaction="attest 1")}
    assert next_height(reports, HEAD, 0) == HEAD + 1


def test_no_block_is_skipped_in_which_a_transaction_is_confirmed():
    late = replace(SETTLED, block=HEAD - 2, hash="0xbb")
    assert next_height({"a": late}, HEAD, last_sent=49) == 51
    assert next_height({"a": late}, HEAD, last_sent=48) == 70


def test_nobody_waits_for_a_block_that_is_there():
    assert next_height({"a": replace(SETTLED, next_block=None)}, HEAD, 0, planned=[HEAD]) is None


def test_report_is_read_from_health():
    health = {
        "activity": 9,
        "busy": None,
        "settled_at": {"block": 48, "hash": "0xbb", "head": 50},
        "transaction": None,
        "meeting": "judge 7",
        "next_block": 60,
        "role": "committee",
    }
    assert DaemonReport.of(health) == DaemonReport(9, None, 50, 48, "0xbb", None, "judge 7", 60)
    busy = DaemonReport.of(health | {"settled_at": None, "busy": "acting"})
    assert busy.busy == "acting" and busy.head is None
