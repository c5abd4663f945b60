"""Costs that daemons report, and rounds in which a client cheats."""

import json

import pytest

from opfl_chain.jobs.demo.result import Cost, accuracies, by_role, cheats_in, last_words

ALL = range(6)


def test_the_last_words_are_of_the_last_start(tmp_path):
    for start, sent in ((1, 5), (2, 7), (10, 9)):
        lines = ["watchdog: pid 1", json.dumps({"event": "ended", "bytes_sent": sent}), "null"]
        (tmp_path / f"client-1-{start}.log").write_text("\n".join(lines))
    (tmp_path / "client-11-1.log").write_text(json.dumps({"event": "ended", "bytes_sent": 1}))
    assert last_words(tmp_path, "client-1")["bytes_sent"] == 9
    assert last_words(tmp_path, "client-2") is None


def test_killed_daemon_has_no_last_words(tmp_path):
    (tmp_path / "server-1.log").write_text('{"event": "listening"}\n{"event": "en')
    assert last_words(tmp_path, "server") is None


def test_costs_are_added_by_role():
    spent = {
        "member-0": Cost(1, 2, 3, 4, 0.5),
        "member-1": Cost(10, 20, 30, 40, 0.25),
        "server": Cost(7),
    }
    assert by_role(spent) == {"member": Cost(11, 22, 33, 44, 0.75), "server": Cost(7)}


def test_accuracies_are_by_number():
    assert accuracies({"accuracies": {"0": 0.1, "10": 0.5}}) == {0: 0.1, 10: 0.5}
    assert accuracies(None) == accuracies({}) == {}


@pytest.mark.parametrize(
    ("cheat", "took_part", "rounds"),
    [
        (None, ALL, []),
        ("amplify:10", ALL, [0, 1, 2, 3, 4, 5]),
        ("poison", ALL, [0, 1, 2, 3, 4, 5]),
        ("wrong-opening", ALL, [0, 1, 2, 3, 4, 5]),
        ("reuse:2", ALL, [1, 3, 5]),
        ("reuse:3", ALL, [1, 2, 4, 5]),
        ("reuse:3", [0, 4], [4]),
    ],
)
def test_rounds_in_which_a_client_cheats(cheat, took_part, rounds):
    assert [n for n in ALL if cheats_in(cheat, n, took_part)] == rounds


def test_reuse_needs_an_earlier_gradient():
    """The first round that it is in cannot be a cheat, whatever its number."""
    assert not cheats_in("reuse:2", 1, [1, 2, 3])
    assert cheats_in("reuse:2", 3, [1, 2, 3])
