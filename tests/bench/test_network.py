"""Parties in separate networks. Skipped, with the reason, where namespaces are unavailable."""

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

from opfl_chain.bench import network as namespace
from opfl_chain.bench.forwarder import DelayLine
from opfl_chain.bench.network import NamespacesUnavailable, WideAreaNetwork, three_parties
from opfl_chain.cli import app
from opfl_chain.mpc.audit.judge import exchange_findings
from opfl_chain.mpc.session.session import Session

RTT_MS = 30.0
WAITING = """
from opfl_chain.bench.network import three_parties

with three_parties(30.0) as parties:
    parties.local.wait_until_warm()
    print(*(party.pid for party in parties.local.parties), flush=True)
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
    """Return the network namespace of a process."""
    return Path(f"/proc/{pid}/ns/net").readlink()


def networks_in_use() -> set[Path]:
    """Return the network namespaces of all threads of all processes."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/task/*/ns/net"):
        try:
            found.add(place.readlink())
        except OSError:  # the process has just ended
            continue
    return found


def await_disuse(networks: set[Path], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while networks & networks_in_use():
        assert time.monotonic() < deadline, "a network is still in use"
        time.sleep(0.1)


def delays_of_forwarders() -> list[float]:
    """Return the seconds that each forwarder of this process was told to delay packets by."""
    delays = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = (status.parent / "cmdline").read_text().split("\0")
        except OSError:  # the process has just ended
            continue
        if parent == os.getpid() and any(word.endswith("forwarder.py") for word in command):
            position = next(i for i, word in enumerate(command) if word.endswith("forwarder.py"))
            delays.append(float(command[position + 1]))
    return delays


def test_round_trip_takes_at_least_the_requested_time(network: WideAreaNetwork) -> None:
    assert network.measured_rtt_ms() >= RTT_MS


def test_round_trip_is_delayed_by_no_more_than_the_requested_time(network: WideAreaNetwork) -> None:
    """In the forwarder's own time: what a busy machine adds says nothing about the forwarder."""
    assert network.places  # the forwarder runs
    (seconds,) = delays_of_forwarders()
    line = DelayLine(seconds)
    line.put(0.0, 1, b"there")
    assert list(line.take_due(line.pause(0.0))) == [(1, b"there")]
    line.put(seconds, 0, b"back")
    assert line.pause(seconds) == pytest.approx(seconds)
    assert list(line.take_due(RTT_MS / 1000)) == [(0, b"back")]


def test_packets_are_due_once_in_order_and_not_before_their_time() -> None:
    line = DelayLine(1.0)
    assert line.pause(0.0) is None
    line.put(0.0, 1, b"first")
    line.put(0.5, 2, b"second")
    assert list(line.take_due(0.999)) == []
    assert line.pause(0.75) == pytest.approx(0.25)
    assert list(line.take_due(1.5)) == [(1, b"first"), (2, b"second")]
    assert line.pause(9.0) is None
    assert list(line.take_due(9.0)) == []


def round_trips(session: Session, count: int, size: int) -> list[float]:
    """Return the seconds of each of `count` exchanges of `size` bytes with both peers."""
    seconds = []
    for _ in range(count):
        started = time.perf_counter()
        session.call(exchange_findings, subject=bytes(size), plugins={}, findings=[])
        seconds.append(time.perf_counter() - started)
    return seconds


def test_parties_apart_meet_and_wait_for_each_other(network: WideAreaNetwork) -> None:
    with network.committee() as local, local.session(seconds=600) as committee:
        networks = {network_of(party.pid) for party in local.parties}
        assert len(networks - {network_of("self")}) == 3
        exchanges = committee.each(lambda session: round_trips(session, 4, 10))
        # More than the packets that can be in flight at a time.
        committee.each(lambda session: round_trips(session, 1, 4 << 20))
    # A message each way is an exchange, and two exchanges are at least a round trip.
    assert all(sum(seconds) >= 2 * RTT_MS / 1000 for seconds in exchanges)


@pytest.mark.usefixtures("available")
def test_nothing_is_left_behind() -> None:
    with three_parties(RTT_MS) as parties:
        networks = {network_of(party.pid) for party in parties.local.parties}
        assert parties.measured_rtt_ms is not None
    await_disuse(networks)
    assert Path("/dev/net/tun") not in {file.resolve() for file in Path("/proc/self/fd").iterdir()}


@pytest.mark.usefixtures("available")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_no_network_is_left_behind_by_a_killed_process(
    ending: signal.Signals, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # a killed process leaves its certificates
    ) as process:
        assert process.stdout
        networks = {network_of(int(pid)) for pid in process.stdout.readline().split()}
        assert len(networks) == 3
        process.send_signal(ending)
    await_disuse(networks)


def test_skipped_bench_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(namespace.shutil, "which", lambda _: None)
    report = tmp_path / "report.json"
    result = CliRunner().invoke(
        app, ["bench", "audit", "--rtt-ms", "20", "--json", str(report)], catch_exceptions=False
    )
    assert result.exit_code == 0
    reason = json.loads(report.read_text())["skipped"]
    assert result.stdout.strip() == f"skipped: {reason}"
    assert "the `ip` command is not installed. To fix it, install iproute2" in reason
