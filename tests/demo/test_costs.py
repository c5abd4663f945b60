"""What daemons say that they spent."""

import json

from opfl_chain.demo.costs import Cost, accuracies, by_role, last_words


def test_the_last_words_are_of_the_last_start(tmp_path):
    for start, sent in ((1, 5), (2, 7), (10, 9)):
        lines = ["watchdog: pid 1", json.dumps({"event": "ended", "bytes_sent": sent}), "null"]
        (tmp_path / f"client-1-{start}.log").write_text("\n".join(lines))
    (tmp_path / "client-11-1.log").write_text(json.dumps({"event": "ended", "bytes_sent": 1}))
    assert last_words(tmp_path, "client-1")["bytes_sent"] == 9
    assert last_words(tmp_path, "client-2") is None


def test_who_was_killed_has_no_last_words(tmp_path):
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
