"""What a round costs beside its audits: transfer of shares, aggregation, and the chain."""

from __future__ import annotations

import os
import socket
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opfl_chain.benchmarks.step import held, packages_of, shared
from opfl_chain.chain.devnet import StartedDevnet, start_devnet
from opfl_chain.mpc.ranks import MEMBERS
from opfl_chain.protocol.aggregate import open_sum, sum_components
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex, JobId
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.rehearsal.stage import ACCOUNTS_BESIDE_CLIENTS, Stage
from opfl_chain.rehearsal.terms import model_hash

_LENGTH = struct.Struct(">Q")


@dataclass(frozen=True)
class RoundCosts:
    """Medians. Seconds of a client are spent by all clients at once, those of members likewise."""

    clients: int
    share_seconds: float
    """One client splits a gradient, hashes the shares and packs them."""
    transfer_seconds: float
    """Three packages over loopback, each written to disk before it is acknowledged."""
    transfer_bytes: int
    input_transfer_seconds: float
    """The same for an input, which is all that is shared if everything runs inside MPC."""
    input_transfer_bytes: int
    aggregation_seconds: float
    """Each member adds up its shares of all clients, sends the sum to another, and opens it."""
    chain_node_seconds: float
    """CPU time of the chain's node for the transactions of one round."""
    gas: int

    @property
    def report(self) -> dict[str, Any]:
        return asdict(self)


def round_costs(
    coordinates: int, input_words: int, clients: int, repeats: int, progress: Callable[[str], None]
) -> RoundCosts:
    """Measure on this machine."""
    random = np.random.default_rng(0)
    gradient, training_input = (
        random.integers(-(1 << 50), 1 << 50, count) for count in (coordinates, input_words)
    )
    progress("sharing and sending")
    share_seconds = _median(repeats, lambda: _timed(lambda: packages_of(gradient)))
    sent = packages_of(gradient)[1]
    sent_inputs = packages_of(training_input)[1]
    with Members(len(sent), durable=True) as members:
        transfer = _median(repeats, lambda: _timed(lambda: members.deliver(sent)))
        inputs = _median(repeats, lambda: _timed(lambda: members.deliver(sent_inputs)))
    progress("aggregating")
    aggregation = _aggregation_seconds(gradient, clients, repeats)
    progress("playing rounds on a chain")
    node_seconds, gas = _chain_costs(clients, repeats)
    return RoundCosts(
        clients,
        share_seconds,
        transfer,
        sum(map(len, sent)),
        inputs,
        sum(map(len, sent_inputs)),
        aggregation,
        node_seconds,
        gas,
    )


class Members:
    """Listeners that take whatever is sent, write it to disk if it must last, and then say so."""

    def __init__(self, count: int, durable: bool) -> None:
        self._durable = durable
        self._folder = tempfile.TemporaryDirectory(prefix="opfl-bench-")
        self._sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._serve, args=(rank, each), daemon=True)
            for rank, each in enumerate(self._sockets)
        ]

    def __enter__(self) -> Members:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        for each in self._sockets:
            each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()
        self._folder.cleanup()

    def deliver(self, packages: Sequence[bytes]) -> None:
        """Send to all members at once, and wait for all."""
        senders = [
            threading.Thread(target=self._send, args=(each.getsockname(), package))
            for each, package in zip(self._sockets, packages, strict=True)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()

    def _send(self, address: Any, package: bytes) -> None:
        with socket.create_connection(address) as connection:
            connection.sendall(_LENGTH.pack(len(package)) + package)
            if connection.recv(1) != b"1":
                raise AssertionError("a member did not acknowledge its package")

    def _serve(self, rank: int, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # closed
                return
            with connection, connection.makefile("rb") as stream:
                (size,) = _LENGTH.unpack(stream.read(_LENGTH.size))
                package = stream.read(size)
                if self._durable:
                    with (Path(self._folder.name) / str(rank)).open("wb") as file:
                        file.write(package)
                        file.flush()
                        os.fsync(file.fileno())
                connection.sendall(b"1")


def _aggregation_seconds(gradient: np.ndarray[Any, Any], clients: int, repeats: int) -> float:
    vector = shared(gradient)
    accepted = [[held(vector, rank)] * clients for rank in range(MEMBERS)]
    with Members(MEMBERS, durable=False) as members, ThreadPoolExecutor(MEMBERS) as pool:

        def once() -> None:
            sums = list(pool.map(sum_components, accepted))
            members.deliver([own.tobytes() + following.tobytes() for own, following in sums])
            components = {rank: own for rank, (own, _) in enumerate(sums)}
            opened = list(pool.map(open_sum, [components] * MEMBERS))
            assert np.array_equal(opened[0], clients * gradient)

        return _median(repeats, lambda: _timed(once))


def _chain_costs(clients: int, rounds: int) -> tuple[float, int]:
    """The node's CPU seconds and the gas of an honest round.

    Blocks that are mined to get past deadlines do not count: a chain makes them anyway.
    """
    with (
        start_devnet("anvil", accounts=clients + ACCOUNTS_BESIDE_CLIENTS) as devnet,
        tempfile.TemporaryDirectory(prefix="opfl-bench-") as folder,
    ):
        assert isinstance(devnet, StartedDevnet)
        mining = 0.0

        def mine(blocks: int) -> None:
            nonlocal mining
            before = _cpu_seconds(devnet.pid)
            devnet.mine(blocks)
            mining += _cpu_seconds(devnet.pid) - before

        with Stage(devnet.rpc, devnet.accounts, mine, Path(folder)) as stage:
            stage.register_keys()
            job, _ = stage.create_job(audit_rate=0.0, rounds=rounds + 1)
            stage.join(job)
            stage.enrol(job)
            _round(stage, job, 0)  # the first is dearer: slots are written for the first time
            before, mining = _cpu_seconds(devnet.pid), 0.0
            gas = [_round(stage, job, number) for number in range(1, rounds + 1)]
            spent = _cpu_seconds(devnet.pid) - before - mining
        return spent / rounds, round(statistics.median(gas))


def _round(stage: Stage, job: JobId, number: int) -> int:
    round_id, opened = stage.open_round(job)
    receipts = [opened, *stage.commit(round_id, stage.clients), stage.publish_beacon(round_id)]
    everyone = Verdict.of({ClientIndex(i) for i in range(len(stage.clients))}, {})
    receipts += stage.attest(round_id, everyone, (0, 1, 2))
    receipts.append(stage.finalise(round_id, keccak256(b"aggregate"), model_hash(number + 1)))
    return sum(receipt.gas_used for receipt in receipts)


def _cpu_seconds(pid: int) -> float:
    """Of a process, all threads that it has."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _median(repeats: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(repeats))
