"""Parties in networks of their own. Skipped, with the reason, where those cannot be made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from opfl_chain.benchmarks import namespace
from opfl_chain.benchmarks.namespace import NamespacesUnavailable
from opfl_chain.benchmarks.wan import WideAreaNetwork, three_parties
from opfl_chain.cli import app
from opfl_chain.mpc.probe import round_trips

RTT_MS = 30.0
WAITING = """
from opfl_chain.benchmarks.wan import three_parties

with three_parties(30.0) as (local, _):
    local.wait_until_warm()
    print(*(party.pid for party in local.parties), flush=True)
    input()
"""


@pytest.fixture(scope="module")
def available() -> None:
    try:
        WideAreaNetwork(RTT_MS).close()
    except NamespacesUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def network(available: None) -> Iterator[WideAreaNetwork]:
    with WideAreaNetwork(RTT_MS) as opened:
        yield opened


def network_of(pid: int | str | None) -> Path:
    """The network namespace in which a process is."""
    return Path(f"/proc/{pid}/ns/net").readlink()


def networks_in_use() -> set[Path]:
    """By any thread of any process."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/task/*/ns/net"):
        try:
            found.add(place.readlink())
        except OSError:  # it has just ended
            continue
    return found


def await_disuse(networks: set[Path], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while networks & networks_in_use():
        assert time.monotonic() < deadline, "a network is still in use"
        time.sleep(0.1)


def test_a_round_trip_takes_as_long_as_asked(network: WideAreaNetwork) -> None:
    assert RTT_MS <= network.measured_rtt_ms() < 2 * RTT_MS


def test_parties_apart_meet_and_wait_for_each_other(network: WideAreaNetwork) -> None:
    with network.committee() as local, local.session(seconds=60) as committee:
        networks = {network_of(party.pid) for party in local.parties}
        assert len(networks - {network_of("self")}) == 3
        exchanges = committee.each(lambda session: session.call(round_trips, count=4, size=10))
        # More than packets can be under way at a time.
        committee.each(lambda session: session.call(round_trips, count=1, size=4 << 20))
    # A message each way is an exchange, and two exchanges are at least a round trip.
    assert all(sum(seconds) >= 2 * RTT_MS / 1000 for seconds in exchanges)


@pytest.mark.usefixtures("available")
def test_nothing_is_left_behind() -> None:
    with three_parties(RTT_MS) as (local, measured_rtt_ms):
        networks = {network_of(party.pid) for party in local.parties}
        assert measured_rtt_ms is not None
    await_disuse(networks, seconds=1.0)
    assert Path("/dev/net/tun") not in {file.resolve() for file in Path("/proc/self/fd").iterdir()}


@pytest.mark.usefixtures("available")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_no_network_is_left_behind_by_a_process_that_is_ended(
    ending: signal.Signals, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # one that is killed leaves its certificates
    ) as process:
        assert process.stdout
        networks = {network_of(int(pid)) for pid in process.stdout.readline().split()}
        assert len(networks) == 3
        process.send_signal(ending)
    await_disuse(networks)


def test_the_bench_says_why_it_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(namespace.shutil, "which", lambda _: None)
    report = tmp_path / "report.json"
    result = CliRunner().invoke(
        app, ["bench", "audit", "--rtt-ms", "20", "--json", str(report)], catch_exceptions=False
    )
    assert result.exit_code == 0
    reason = json.loads(report.read_text())["skipped"]
    assert result.stdout.strip() == f"skipped: {reason}"
    assert "there is no `ip` command: install iproute2" in reason
