"""Rows of `opfl bench attacks`, and the command with one attack."""

import json
from dataclasses import dataclass, field, replace

import pytest
from typer.testing import CliRunner

from opfl_chain.bench.attacks.catalogue import ATTACKS, attacks_called
from opfl_chain.bench.attacks.report import attacks_markdown
from opfl_chain.bench.attacks.rows import row_of
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


def test_page_has_a_row_for_every_attack():
    page = attacks_markdown([replace(row(Ended()), attack=each.name).report for each in ATTACKS])
    assert all(f"| {each.name} |" in page for each in ATTACKS)


def test_unknown_attack_is_refused():
    result = CliRunner().invoke(app, ["bench", "attacks", "--only", "nothing"])
    assert result.exit_code == 2
    assert "unknown attack 'nothing'" in " ".join(result.output.split())


def test_command_plays_an_attack_and_writes_its_row(tmp_path):
    file = tmp_path / "attacks.json"
    result = CliRunner().invoke(
        app, ["bench", "attacks", "--only", "withhold", "--json", str(file)], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    (found,) = json.loads(file.read_text())["attacks"]
    assert found["attack"] == "withhold"
    assert found["cheat_charged"] is True
    assert found["honest_clients_lost_wei"] == found["honest_members_lost_wei"] == 0
