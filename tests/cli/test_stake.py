import json

import pytest
import typer
from typer.testing import CliRunner

from opfl_chain.cli.stake import stake

app = typer.Typer()
app.command()(stake)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_prints_the_table_of_the_paper():
    result = run()
    assert result.exit_code == 0
    for cell in ("1.11", "1.12", "1.76", "1.01", "1.59", "0.6340", "-0.10"):
        assert cell in result.stdout


def test_json_holds_the_table(tmp_path):
    file = tmp_path / "stake.json"
    assert run("--rates", "0.2, 0.02", "--json", str(file)).exit_code == 0
    report = json.loads(file.read_text())
    assert [row["audit_rate_per_round"] for row in report["trade_off"]] == [0.2, 0.02]
    assert report["assumptions"]["skipped_rounds"] == 100


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
        (["--rates", "2"], "audit rate is 2.0, it must be in [0, 1]"),
        (["--rates", "0.00001"], "no deposit deters at audit rate 1e-05"),
        (["--skipped-rounds", "0"], "skipped rounds are 0"),
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
