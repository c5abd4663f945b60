import json

import pytest
import typer
from typer.testing import CliRunner

from opfl_chain.cli.stake import stake

app = typer.Typer()
app.command()(stake)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_prints_the_deposits_of_the_formula():
    result = run()
    assert result.exit_code == 0
    for cell in ("11.00", "22.00", "110.00", "2.00", "10.00", "-0.10"):
        assert cell in result.stdout


@pytest.mark.parametrize(
    ("options", "deposit"),
    [
        ([], 22.0),  # 1.1 / 0.05
        (["--outside-gain", "2"], 66.0),  # 3.3 / 0.05
        (["--pay", "2"], 20.0),  # (1.1 - 0.05 * 2) / 0.05
        (["--cheapest-penalty", "0.1"], 220.0),  # 1.1 / (0.05 * 0.1)
        (["--honest-rejection", "0.5"], 44.0),  # 1.1 / (0.05 * 0.5)
        (["--margin", "0"], 20.0),
    ],
)
def test_deposit_follows_from_the_best_response_of_a_cheat(tmp_path, options, deposit):
    file = tmp_path / "stake.json"
    assert run("--rates", "0.05", *options, "--json", str(file)).exit_code == 0
    (row,) = json.loads(file.read_text())["trade_off"]
    assert row["deposit_units_of_cost"] == pytest.approx(deposit)


def test_json_holds_the_table(tmp_path):
    file = tmp_path / "stake.json"
    assert run("--rates", "0.2, 0.02", "--json", str(file)).exit_code == 0
    report = json.loads(file.read_text())
    assert [row["audit_rate_per_contribution"] for row in report["trade_off"]] == [0.2, 0.02]
    assert report["assumptions"]["cheapest_penalty_part_of_deposit"] == 1


@pytest.mark.parametrize("rates", ["0.1,0.05,0.01", "1", "0.0002,1"])
def test_plot_is_a_png(tmp_path, rates):
    file = tmp_path / "stake.png"
    assert run("--rates", rates, "--plot", str(file)).exit_code == 0
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rates", "0.1,often"], "--rates is '0.1,often', it must be numbers"),
        (["--rates", ""], "--rates is ''"),
        (["--rates", "2"], "audit rate is 2.0, it must be in (0, 1]"),
        (["--rates", "0"], "audit rate is 0.0"),
        (["--honest-rejection", "0.1", "--cheapest-penalty", "0.1"], "no deposit deters"),
        (["--cheapest-penalty", "0"], "cheapest penalty is 0.0"),
        (["--plot", "stake.svg"], "--plot is stake.svg, it must end in .png"),
        (["--json", "/nowhere/stake.json"], "No such file or directory"),
    ],
)
def test_error_is_one_line_and_exits_with_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("opfl stake: ")
    assert result.stderr.count("\n") == 1
