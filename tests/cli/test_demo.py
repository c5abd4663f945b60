"""The demo as a user runs it: every party a process, on a real Anvil."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from opfl_chain.adversaries.clients import client_cheats
from opfl_chain.adversaries.members import MEMBERS
from opfl_chain.adversaries.servers import SERVERS
from opfl_chain.bench.attacks.catalogue import ATTACKS
from opfl_chain.chain.terms import DEPOSIT, PAY, STAKE
from opfl_chain.cli import app
from opfl_chain.cli.demo import CHEATS, demo, plan_of_demo
from opfl_chain.jobs.demo.demo import FolderTaken

ROUNDS = 3


def opfl(*arguments):
    command = [sys.executable, "-m", "opfl_chain.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Everything is audited, so that the outcome does not depend on chance."""
    folder = tmp_path_factory.mktemp("demo")
    finished = opfl(
        *("demo", "--rounds", ROUNDS, "--clients", 4, "--cheat", "amplify:10"),
        *("--audit-rate", 1, "--dataset", "synthetic", "--out", folder / "out"),
        *("--kill", "client:0@round1"),
        *("--json", folder / "report.json", "--record", folder / "picture.svg"),
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return folder, json.loads((folder / "report.json").read_text()), finished.stdout


@pytest.fixture(scope="module")
def report(run):
    return run[1]


def test_the_cheat_is_charged_and_nobody_else(report):
    assert report["rounds"] == report["rounds_final"] == ROUNDS
    assert report["honest_clients_lost"] == report["honest_members_lost"] == 0
    assert report["cheats_audited"] == report["cheats_charged"] == 1
    *honest, cheat = report["clients"]
    assert [client["cheat"] for client in honest] == [None] * 3
    assert cheat["cheat"] == "amplify:10"
    assert all(client["role"] == "client" for client in report["clients"])
    assert (cheat["deposit_before"], cheat["deposit_after"]) == (DEPOSIT, 0)
    assert cheat["charged"] == DEPOSIT
    assert cheat["audited"] == cheat["held"] == cheat["failed"] == cheat["rounds"] == 1
    assert cheat["earned"] == 0
    for client in honest:
        assert client["deposit_before"] == client["deposit_after"] == DEPOSIT
        assert client["audited"] == client["rounds"] >= 1
        assert client["failed"] == client["charged"] == 0
        assert client["earned"] == client["rounds"] * PAY.client


def test_the_last_table_shows_every_round_as_it_ended(run):
    *_, table = run[2].split("rounds 0 to")
    rows = [line for line in table.splitlines() if line.strip().startswith("client-")][:4]
    assert len(rows) == 4
    assert not {"○", "?", "!"} & {mark for row in rows for mark in row.split()}


def test_money_is_conserved(report):
    assert report["burned_wei"] + report["treasury_wei"] == DEPOSIT
    assert min(report["burned_wei"], report["treasury_wei"]) > 0
    for member in report["members"]:
        assert member["deposit_before"] == member["deposit_after"] == STAKE
        assert member["earned"] == (ROUNDS * PAY.member if member["role"] == "member" else 0)
    escrowed = ROUNDS * (4 * PAY.client + 3 * PAY.member)
    assert report["paid_wei"] + report["refunded_wei"] == escrowed
    assert report["refunded_wei"] > 0
    assert report["unaccounted_wei"] == 0


def test_costs_are_those_of_real_work(report):
    assert set(report["gas"]) == {"operator", "server", "member", "standby", "client"}
    assert all(gas > 100_000 for gas in report["gas"].values())
    costs = report["costs"]
    assert costs["client"]["bytes_sent"] > 3 * 3 * 2 * 61_706 * 8  # one component in full to two
    assert costs["member"]["bytes_received"] >= costs["client"]["bytes_sent"] // 2
    assert costs["member"]["mpc_bytes_sent"] > 1_000_000
    assert costs["server"]["bytes_sent"] > 0
    # Without loading the programs, which is done once for all.
    assert all(costs[role]["cpu_seconds"] > 1 for role in ("client", "member"))
    assert costs["server"]["cpu_seconds"] > 0.1
    assert report["seconds"] > 5
    # Work, not time: a busy machine takes longer for the same.
    assert sum(each["cpu_seconds"] for each in costs.values()) < 300


def test_every_model_is_scored(report):
    assert set(report["accuracies"]) == {str(updates) for updates in range(ROUNDS + 1)}
    assert report["accuracy_first"] == report["accuracies"]["0"]
    assert report["accuracy_last"] == report["accuracies"][str(ROUNDS)]


def test_trail_and_report_are_left(run):
    folder, report, _ = run
    assert report["trail_verified"] is True
    assert report["trail_facts"] > 100
    assert (folder / "out" / "trail" / "trail.json").is_file()
    page = (folder / "out" / "report.html").read_text()
    assert page.count("<svg") >= 5
    assert 'src="' not in page
    assert "amplify:10" in page
    assert json.loads((folder / "out" / "result.json").read_text()) == report
    assert "amplify:10" in (folder / "picture.svg").read_text().replace("&#160;", " ")


def test_events_are_told_line_by_line(run):
    lines = run[2].splitlines()
    for told in (
        "4 on the roll",
        "3 pass; client-3 does not",
        "10 ETH of client-3 for round 0 set aside until it is decided",
        "client-3 has lost 10 ETH: its step is outside the boundary",
        "client-0 is killed in the middle of round 1",
        "client-0 restarts",
        "audit trail verified",
    ):
        assert sum(told in line for line in lines) >= 1, told


def test_the_killed_client_goes_on(run):
    folder, report, _ = run
    assert (folder / "out" / "net" / "client-0-2.log").is_file()
    assert report["clients"][0]["deposit_after"] == DEPOSIT


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    finished = opfl(
        *("demo", "--audit", "proved", "--bad-member", "split+flip", "--bad-server", "hide"),
        *("--rounds", 2, "--clients", 6, "--cheat", "amplify:10", "--audit-rate", 1),
        *("--dataset", "synthetic", "--out", folder / "out", "--json", folder / "report.json"),
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    report = json.loads((folder / "report.json").read_text())
    return report, finished.stdout, (folder / "out" / "report.html").read_text()


def test_attacks_by_name_are_shown_to_fail_and_to_pay(attacked):
    """`split` brings a client that answers its member alone, and `hide` one that answers nobody."""
    report, told, page = attacked
    liar, *honest, standby = report["members"]
    assert (liar["name"], liar["cheat"], standby["name"]) == ("member-0", "lie+flip", "standby-0")
    assert liar["penalised"] == STAKE
    assert {"falsehood in round 0", "dissent in round 0"} <= set(liar["faults"])
    assert [member["penalised"] for member in (*honest, standby)] == [0, 0, 0]
    assert [client["cheat"] for client in report["clients"]] == [
        *(None, None, None),
        *("amplify:10", "amplify:10+split", "amplify:10+withhold-answer"),
    ]
    assert report["honest_clients_lost"] == report["honest_members_lost"] == 0
    assert report["cheats_charged"] == 3
    assert report["seat_changes"] == [["member-0", "standby-0"]]
    for said in (
        "for round 0: it stated a falsehood",
        "the seats of later rounds are standby-0, member-1, member-2",
        "member-0 (lie+flip) paid 20 ETH for",
        "server (idle) stopped nothing: 2 of 2 rounds are final",
    ):
        assert said in told
    for said in ("falsehood in round 0", "a server that cheats (idle)", "<b>2 of 2</b>"):
        assert said in page


IN_HELP = {
    "Cheats, with": client_cheats(),
    "Attacks of a member": [*MEMBERS.names(), "split"],
    "Attacks of the server": [*SERVERS.names(), "late-list", "hide"],
}
IN_WORDS = {"ATTACK+BUNDLE", "ATTACK+ATTACK"}


@pytest.mark.parametrize("section", IN_HELP)
def test_help_names_every_attack_once(section):
    _, text = demo.__doc__.split(section)
    lines = text.split("\n\n")[0].splitlines()[1:]
    columns = [line[6:].split("  ")[0] for line in lines]
    named = [name for column in columns for name in re.split(r", *", column) if name]
    assert sorted(set(named) - IN_WORDS) == sorted(IN_HELP[section])
    assert len(set(named)) == len(named)


def planned(**chosen):
    usual = {
        "clients": 6,
        "cheats": None,
        "bad_member": None,
        "bad_server": None,
        "rounds": 2,
        "audit_rate": 1.0,
        "chain": "anvil",
        "model": "lenet-61706",
        "audit": "proved",
        "scheme": "shares",
        "dataset": "synthetic",
        "seed": 1,
    }
    return plan_of_demo(**{**usual, **chosen})


OF_A_MEMBER_OR_THE_SERVER = [each for each in ATTACKS if each.member or each.server]


@pytest.mark.parametrize("attack", OF_A_MEMBER_OR_THE_SERVER, ids=lambda attack: attack.name)
def test_every_known_attack_of_a_member_or_the_server_is_played_by_its_name(attack):
    """With the clients that take part in it, and with hyphens for spaces."""
    role = "bad_member" if attack.member else "bad_server"
    for name in {attack.name, attack.name.replace(" ", "-")}:
        plan = planned(**{role: name})
        assert attack.member in (None, *plan.members)
        assert attack.server in (None, plan.server)
        assert {*CHEATS, *attack.accomplices} == set(plan.clients) - {None}


@pytest.mark.parametrize(
    ("role", "name"),
    [
        *(("bad_member", name) for name in ("flip", "reveal-others", "leak", "sums+flip")),
        ("cheats", ["forge"]),
    ],
)
def test_attacks_on_proved_steps_are_refused_where_steps_are_replayed(role, name):
    assert planned(**{role: name}).audit == "proved"
    with pytest.raises(typer.BadParameter, match="add --audit proved"):
        planned(audit="guided", **{role: name})


def test_an_interrupt_leaves_no_process_behind(tmp_path):
    # Where tests run in the background of a shell, SIGINT is ignored, and Python leaves it so.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from opfl_chain.cli import main; main()"
    )
    arguments = ["demo", "--dataset", "synthetic", "--out", str(tmp_path / "out")]
    demo = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with demo:
        next(line for line in demo.stdout if "starting 10 processes" in line)
        _await(lambda: len(processes_of(tmp_path)) >= 10)
        demo.send_signal(signal.SIGINT)
        assert "interrupted" in demo.stdout.read()
        assert demo.wait(600) == 130
    _await(lambda: not processes_of(tmp_path))


def processes_of(folder):
    """Return the processes that write to a file in this folder, such as their logs."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/fd/[12]"):
        with contextlib.suppress(OSError):
            if path.readlink().is_relative_to(folder / "out" / "net"):
                found.add(path.parents[1].name)
    return found


def _await(condition):
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--clients", "1"], "--clients"),
        (["demo", "--clients", "2"], "--clients"),
        (["demo", "--clients", "3", "--cheat", "evade", *["--cheat", "high-s"] * 2], "honest"),
        (["demo", "--bad-member", "steal"], "withhold-beacon"),
        (["demo", "--bad-server", "steal"], "wrong-model-hash"),
        (["demo", "--audit-rate", "1.5"], "--audit-rate"),
        (["demo", "--chain", "geth"], "--chain"),
        (["demo", "--cheat", "steal"], "withhold-shares"),
        (["demo", "--cheat", "amplify:x"], "amplify:x"),
        (["demo", "--model", "gpt"], "lenet-61706"),
        (["demo", "--dataset", "imagenet"], "synthetic"),
        (["demo", "--scheme", "none"], "--scheme"),
        (["demo", "--kill", "committee:7@round0"], "--kill"),
        (["dmo"], "No such command"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    assert message in refused.output


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    refused = CliRunner().invoke(app, ["demo", "--dataset", "synthetic", "--out", str(tmp_path)])
    assert isinstance(refused.exception, FolderTaken)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
