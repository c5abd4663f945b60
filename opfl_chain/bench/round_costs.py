"""Costs of a round besides its audits: transfer of shares, aggregation, and the chain."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from opfl_chain.bench.uploads import Members
from opfl_chain.chain.devnet import StartedDevnet, start_devnet
from opfl_chain.jobs.contract_demo.contract_job import (
    ACCOUNTS_BESIDE_CLIENTS,
    ContractJob,
    model_hash,
)
from opfl_chain.lab.calibration.replayer import held, shared
from opfl_chain.lab.sample_step import packages_of
from opfl_chain.mpc.audit.judge import check_deliveries
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.protocol.aggregate import open_sum, sum_components
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import Checked, Claim, Delivery, Expected
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex, JobId, RoundNumber
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.shares import SharePackage
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.system.resources import keep_freed_memory

_REPEATS = 25
"""Repetitions of measurements in milliseconds."""


@dataclass(frozen=True)
class RoundCosts:
    """Median costs. Members work in parallel, and so do clients."""

    clients: int
    share_seconds: float
    """One client splits a gradient, hashes the shares and packs them."""
    gate_seconds: float
    """A member checks a delivery, per client."""
    transfer_seconds: float
    """Three packages of each client over loopback, written to disk before they are acknowledged,
    per client."""
    transfer_bytes: int
    """Sent by one client."""
    input_transfer_seconds: float
    """The same for an input, the only shared vector if everything runs inside MPC."""
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
    coordinates: int, input_words: int, clients: int, rounds: int, progress: Callable[[str], None]
) -> RoundCosts:
    """Measure on this machine, with `rounds` rounds played on a chain."""
    keep_freed_memory()  # as a member does
    random = np.random.default_rng(0)
    gradient, training_input = (
        random.integers(-(1 << 50), 1 << 50, count) for count in (coordinates, input_words)
    )
    progress("sharing and sending")
    share_seconds = _median(lambda: packages_of(gradient))
    commitment, sent = packages_of(gradient)
    sent_inputs = packages_of(training_input)[1]
    with Members(durable=True) as members:
        transfer, inputs = (
            _median(lambda each=each: members.take([each] * clients))  # type: ignore[misc]
            for each in (sent, sent_inputs)
        )
    progress("checking")
    gate = _gate_seconds(commitment, sent, coordinates, clients)
    progress("aggregating")
    aggregation = _aggregation_seconds(gradient, clients)
    progress("playing rounds on a chain")
    node_seconds, gas = _chain_costs(clients, rounds)
    return RoundCosts(
        clients,
        share_seconds,
        gate / clients,
        transfer / clients,
        sum(map(len, sent)),
        inputs / clients,
        sum(map(len, sent_inputs)),
        aggregation,
        node_seconds,
        gas,
    )


def _gate_seconds(
    commitment: bytes, sent: Sequence[bytes], coordinates: int, clients: int
) -> float:
    """Measure one member checking all deliveries of a round without audits."""
    rank = 1  # one of the two members that receive words
    expected = Expected(Scheme.SHARES, rank, coordinates, 1)
    claims = [
        Claim(ClientIndex(client), RoundNumber(0), commitment, bytes(32), False)
        for client in range(clients)
    ]

    def once() -> None:
        deliveries = {
            claim.client: Delivery(
                SharePackage.decode(sent[rank], Scheme.SHARES, rank, coordinates)
            )
            for claim in claims
        }
        found = check_deliveries(expected, claims, deliveries)
        if not all(isinstance(each, Checked) for each in found.values()):
            raise AssertionError("a member rejected the delivery of an honest client")

    return _median(once)


def _aggregation_seconds(gradient: np.ndarray[Any, Any], clients: int) -> float:
    vector = shared(gradient)
    accepted = [[held(vector, rank)] * clients for rank in range(MEMBERS)]
    with Members(durable=False) as members, ThreadPoolExecutor(MEMBERS) as pool:

        def once() -> Words:
            sums = list(pool.map(partial(sum_components, fewest=clients), accepted))
            members.take([[b"".join(part.tobytes() for part in each) for each in sums]])
            components = {rank: own for rank, (own, _) in enumerate(sums)}
            opened = list(pool.map(open_sum, [components] * MEMBERS))
            return opened[0]

        assert np.array_equal(once(), clients * gradient)
        return _median(once)


def _chain_costs(clients: int, rounds: int) -> tuple[float, int]:
    """Return the node's CPU seconds and the gas of an honest round.

    Blocks mined to pass deadlines are not counted: a chain makes them anyway.
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

        with ContractJob(devnet.rpc, devnet.accounts, mine, Path(folder)) as actors:
            actors.register_keys()
            job, _ = actors.create_job(audit_rate=0.0, rounds=rounds + 1)
            actors.join(job)
            actors.enrol(job)
            _round(actors, job, 0)  # the first costs more: slots are written for the first time
            before, mining = _cpu_seconds(devnet.pid), 0.0
            gas = [_round(actors, job, number) for number in range(1, rounds + 1)]
            spent = _cpu_seconds(devnet.pid) - before - mining
        return spent / rounds, round(statistics.median(gas))


def _round(actors: ContractJob, job: JobId, number: int) -> int:
    round_id, opened = actors.open_round(job)
    receipts = [
        opened,
        actors.commit_roll(round_id),
        actors.publish_beacon(round_id),
    ]
    everyone = Verdict.of(ClientIndex(i) for i in range(len(actors.clients)))
    receipts += actors.attest(round_id, everyone, (0, 1, 2))
    receipts.append(actors.finalise(round_id, keccak256(b"aggregate"), model_hash(number + 1)))
    return sum(receipt.gas_used for receipt in receipts)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _median(work: Callable[[], object]) -> float:
    """Return the median seconds of some work."""
    taken = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)
