"""One member tampers with everything it sends, and is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from opfl_chain.bench.tampering import attacks, runs
from opfl_chain.bench.tampering.attacks import Said, TamperedMessages, Tampering
from opfl_chain.bench.tampering.audits import Played, audit, uncompared
from opfl_chain.bench.tampering.contributions import Proved, proved
from opfl_chain.bench.tampering.leak import leak_runs
from opfl_chain.cli import app
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.mpc.session.ranks import peers_of

FIELDS = {
    "runs",
    "wrong_verdicts",
    "aborts",
    "settled",
    "named",
    "misnamed",
    "unnamed",
    "opened_bits_per_contribution",
}
LIAR = 1
LEAK = {"off": "nothing", "secrets": 2, "told": 0}


@pytest.fixture(scope="module")
def honest() -> Proved:
    return proved(LENET_61706, "honest", "plain proof", 1)


@pytest.fixture(scope="module")
def forged() -> Proved:
    return proved(LENET_61706, "forging", "false polynomials", 1)


def untampered(contribution: Proved) -> TamperedMessages:
    tampering = Tampering(contribution, LIAR, 0)
    report = contribution.report(LIAR).encode()
    sheet = tampering._sheet(contribution.answers[LIAR].encode())
    return TamperedMessages("none", {peer: Said(report, sheet) for peer in peers_of(LIAR)})


def test_without_tampering_the_verdict_is_right(honest: Proved, forged: Proved) -> None:
    for contribution in (honest, forged):
        played = audit(contribution, LIAR, untampered(contribution))
        assert {end.accepted for end in played.ends.values()} == {contribution.right}
        assert not played.named


def test_forged_polynomials_leave_only_the_last_product_wrong(forged: Proved) -> None:
    first, second, third = (each.own for each in forged.answers)
    total = first + second + third
    assert total.rest == 0
    assert not total.holds


@pytest.mark.parametrize("name", ["honest", "forged"])
def test_corrections_succeed_only_without_the_comparison(
    name: str, request: pytest.FixtureRequest
) -> None:
    contribution: Proved = request.getfixturevalue(name)
    aimed = [a for a in Tampering(contribution, LIAR, 0).all() if a.aims_at_verdict]
    assert aimed
    for attack in aimed:
        assert uncompared(contribution, LIAR, attack) is not contribution.right
        played = audit(contribution, LIAR, attack)
        assert played.named == {LIAR}
        assert played.is_settled
        assert {end.accepted for end in played.ends.values()} == {contribution.right}


@pytest.mark.parametrize("name", ["honest", "forged"])
def test_corrections_do_not_succeed_while_the_other_holder_is_away(
    name: str, request: pytest.FixtureRequest
) -> None:
    """The liar alone answers for its component. A standby contradicts it: nothing is decided."""
    contribution: Proved = request.getfixturevalue(name)
    for attack in Tampering(contribution, LIAR, 0).all():
        if attack.aims_at_verdict:
            assert uncompared(contribution, LIAR, attack) is not contribution.right
            (end,) = audit(contribution, LIAR, attack, away=LIAR - 1).ends.values()
            assert end.accepted is None and end.is_settled


@pytest.mark.parametrize("name", ["honest", "forged"])
def test_who_is_away_stops_no_audit(name: str, request: pytest.FixtureRequest) -> None:
    contribution: Proved = request.getfixturevalue(name)
    for away in peers_of(LIAR):
        (end,) = audit(contribution, LIAR, untampered(contribution), away=away).ends.values()
        assert end.accepted is contribution.right and end.named == (away,)


def test_tampering_changes_nothing_that_honest_members_reveal(honest: Proved) -> None:
    some = list(Tampering(honest, LIAR, 0).all())[::7]
    opened = frozenset().union(*(audit(honest, LIAR, each).opened for each in some))
    assert len(opened) == 2


def test_right_and_wrong_guesses_at_a_secret_end_alike(honest: Proved) -> None:
    played: dict[bool, dict[str, Played]] = {True: {}, False: {}}
    for attack in Tampering(honest, LIAR, 0).all():
        if attack.guess is not None:
            how, is_right = attack.guess.how, attack.guess.is_right
            played[is_right][how] = audit(honest, LIAR, attack)
            if how == "own":
                assert uncompared(honest, LIAR, attack) is is_right
    assert played[True] == played[False] and len(played[True]) == 6
    for each in played[True].values():
        assert each.named == {LIAR} and len(each.opened) == 2


def test_who_knows_all_but_one_bit_is_told_it_only_without_masks_or_by_a_second_challenge() -> None:
    told = {row["off"]: row["told"] for row in leak_runs(LENET_61706, 1)}
    assert told == {
        "nothing": 0,
        "comparison": 0,
        "masks": 2,
        "masks, comparison": 2,
        "one challenge only": 2,
    }


def test_words_that_are_committed_to_and_withheld_are_an_absence(honest: Proved) -> None:
    (attack,) = (a for a in Tampering(honest, LIAR, 0).all() if a.name == "answers: no words")
    played = audit(honest, LIAR, attack)
    assert played.named == {LIAR}
    assert {end.accepted for end in played.ends.values()} == {True}


def test_the_command_counts_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CLIENTS", (("cheating", "plain proof"),))
    monkeypatch.setattr(runs, "leak_runs", lambda model, seed: [LEAK])
    monkeypatch.setattr(attacks, "BIT_CLASSES", (0, 127))
    path, page = tmp_path / "report.json", tmp_path / "page.md"
    marks = ("<!-- begin tampering with lenet-61706 -->", "<!-- end tampering with lenet-61706 -->")
    page.write_text("\n".join(marks))
    result = CliRunner().invoke(
        app, ["bench", "tamper", "--json", str(path), "--page", str(page)], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    report = json.loads(path.read_text())
    assert report.keys() >= FIELDS
    assert report["runs"] >= report["named"] >= report["settled"] > 0
    assert report["named"] > 0.9 * report["runs"] > 200
    assert report["wrong_verdicts"] == report["aborts"] == 0
    assert report["misnamed"] == report["unnamed"] == 0
    assert report["opened_bits_per_contribution"] == 1
    assert report["unconfirmed_wrong_verdicts"] == 0
    assert report["uncompared_wrong_verdicts"] == report["uncompared_attacks"] > 0
    assert "| cheating | plain proof |" in page.read_text()
    assert "| nothing | 0 of 2 |" in page.read_text()
