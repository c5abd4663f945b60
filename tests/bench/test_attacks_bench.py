"""Rows of `opfl bench attacks`, and the command with one attack."""

import json
from dataclasses import dataclass, field, replace
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from opfl_chain.bench.attacks.catalogue import ATTACKS, attacks_called
from opfl_chain.bench.attacks.report import attacks_markdown
from opfl_chain.bench.attacks.rows import row_of, told_bits
from opfl_chain.cli import app
from opfl_chain.trail.report import Report

DEPOSIT, STAKE = 10, 20
(FLIP,) = attacks_called(["flip"], "proved")


@dataclass
class Ended:
    """A job in which the cheat is charged and the lying member pays."""

    rounds: int = 2
    lost: dict = field(default_factory=lambda: {"client-3": DEPOSIT, "member-0": STAKE})
    outside: set = field(default_factory=lambda: {(0, "client-3")})
    final: int = 2
    report: Report = field(default_factory=lambda: Report({}, ()))

    def is_final(self, number):
        return number < self.final

    def is_audited(self, number, name):
        return name != "client-3" or number == 0

    def participants(self, number):
        return {f"client-{i}" for i in range(4 if number == 0 else 3)}

    def verdict(self, number, name):
        return "OUTSIDE" if (number, name) in self.outside else "PASSED"

    def charged(self):
        return {place: "OUTSIDE" for place in self.outside if self.lost.get(place[1])}

    def penalties(self):
        return {(0, "member-0"): {"FALSEHOOD"}} if self.lost.get("member-0") else {}

    def client_index(self, name):
        return int(name.removeprefix("client-"))

    def seat_changes(self):
        return [("member-0", "standby-0")]

    def lost_wei(self, name):
        return self.lost.get(name, 0)

    def locked_wei(self, name):
        return DEPOSIT if name.startswith("client") else STAKE


def row(ended, openings=None):
    return row_of(FLIP, "proved", ended, openings or {(0, 1, 0): 1})


def test_an_attack_that_failed_has_no_failures():
    found = row(Ended())
    assert found.failures == []
    assert found.cheat_charged is True
    assert (found.attacker_lost_wei, found.secret_bits_leaked) == (STAKE, 0)
    assert "member-0 paid for falsehood in round 0" in found.outcome
    assert "standby-0 took the seat of member-0" in found.outcome


@pytest.mark.parametrize(
    ("ended", "failure"),
    [
        (Ended(lost={"client-3": 10, "member-0": 20, "client-0": 1}), "honest participants lost"),
        (Ended(lost={"client-3": 10, "member-0": 20, "member-1": 1}), "honest participants lost"),
        (Ended(lost={"client-3": 9, "member-0": 20}), "an audited cheat was not charged"),
        (Ended(lost={"member-0": 20}), "an audited cheat was not charged"),
        (Ended(lost={"client-3": 10}), "member-0 lost nothing"),
        (Ended(final=1), "rounds have no result"),
        (Ended(outside={(0, "client-3"), (1, "client-1")}), "secrets leaked"),
    ],
)
def test_what_an_attack_achieved_is_named(ended, failure):
    (found,) = row(ended).failures
    assert found.startswith(failure)


def test_a_second_opening_of_a_contribution_counts_as_leaked():
    assert row(Ended(), {(0, 1, 0): 2}).secret_bits_leaked == 1


def test_a_sum_with_one_honest_client_leaks_its_gradient():
    alone = Ended(outside={(0, name) for name in ("client-1", "client-2", "client-3")})
    assert row(alone).secret_bits_leaked > 64 * 61_706


FLIP_INSIDE, LEAK_INSIDE = attacks_called(["flip", "leak"], "guided")
CHEAT_PASSED = Ended(lost={"client-1": DEPOSIT}, outside={(0, "client-1")})
NOBODY_PAID = Ended(lost={"client-3": DEPOSIT})


def test_an_attack_that_is_known_to_work_is_shown_to_work():
    found = row_of(FLIP_INSIDE, "guided", CHEAT_PASSED, {})
    assert found.failures == []
    assert "honest participants lost money" in found.harm
    assert "| works, as SECURITY.md says: honest" in attacks_markdown([found.report])
    assert row_of(FLIP, "proved", CHEAT_PASSED, {}).failures == found.harm


def test_an_attack_that_should_work_and_does_not_is_a_failure():
    found = row_of(FLIP_INSIDE, "guided", Ended(), {})
    assert found.failures == ["the attack works no more, against SECURITY.md"]


def test_bits_told_by_tampered_replays_are_counted_for_honest_clients():
    told = {(0, 0), (0, 2), (0, 3), (1, 2)}
    found = row_of(LEAK_INSIDE, "guided", NOBODY_PAID, {}, told)
    assert found.secret_bits_leaked == 3
    assert found.harm == ["secrets leaked", "member-0 lost nothing"]


def test_bits_are_read_off_the_log_of_the_member(tmp_path):
    event = {"event": "leak", "round": 1, "bits": {"0": True, "2": False}}
    (tmp_path / "member-0-1.log").write_text(f"started\n{json.dumps(event)}\n")
    assert told_bits(tmp_path, LEAK_INSIDE) == {(1, 0), (1, 2)}
    assert told_bits(tmp_path, attacks_called(["oracle"], "guided")[0]) == set()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attacks_work_inside_mpc_only_where_the_page_says_so(attack):
    assert not attack.on("proved").works
    assert attack.on("guided").works == (attack.name in ("flip", "leak"))


def test_page_has_a_row_for_every_attack():
    page = attacks_markdown([replace(row(Ended()), attack=each.name).report for each in ATTACKS])
    assert all(f"| {each.name} |" in page for each in ATTACKS)


def test_unknown_attack_is_refused():
    result = CliRunner().invoke(app, ["bench", "attacks", "--only", "nothing"])
    assert result.exit_code == 2
    assert "unknown attack 'nothing'" in " ".join(result.output.split())


def test_command_keeps_rows_that_are_there(tmp_path, monkeypatch):
    """Rows of another kind of audits are not kept."""
    monkeypatch.setattr("opfl_chain.bench.attacks.rows.play_attack", played := Mock())
    played.return_value = row_of(FLIP_INSIDE, "guided", CHEAT_PASSED, {})
    file = tmp_path / "attacks.json"
    file.write_text(json.dumps({"kind": "proved", "attacks": [row(Ended()).report]}))
    command = ["bench", "attacks", "--resume", "--only", "flip", "--json", str(file)]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert json.loads(file.read_text())["attacks"][0]["attacker_lost_wei"] == STAKE
    assert not played.called
    assert CliRunner().invoke(app, [*command, "--kind", "guided"]).exit_code == 0
    assert played.call_count == 1


REPRESENTATIVE = {"withhold": "one client", "flip": "one member", "oracle": "an RPC node"}


def test_command_plays_an_attack_of_everybody_and_writes_its_row(tmp_path):
    file = tmp_path / "attacks.json"
    only = [argument for name in REPRESENTATIVE for argument in ("--only", name)]
    result = CliRunner().invoke(
        app, ["bench", "attacks", *only, "--json", str(file)], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    found = json.loads(file.read_text())["attacks"]
    assert {each["attack"]: each["actors"] for each in found} == REPRESENTATIVE
    assert [each["cheat_charged"] for each in found] == [True, True, None]
    for each in found:
        assert each["honest_clients_lost_wei"] == each["honest_members_lost_wei"] == 0
        assert (each["expected"], each["secret_bits_leaked"]) == ("fails", 0)
        assert each["rounds_final"] == each["rounds"]


def test_command_shows_that_a_flip_works_inside_mpc(tmp_path):
    file = tmp_path / "attacks.json"
    result = CliRunner().invoke(
        app,
        ["bench", "attacks", "--kind", "guided", "--only", "flip", "--json", str(file)],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    (found,) = json.loads(file.read_text())["attacks"]
    assert found["expected"] == "works, as SECURITY.md says"
    assert found["honest_clients_lost_wei"] > found["attacker_lost_wei"] == 0
    assert found["cheat_charged"] is False
