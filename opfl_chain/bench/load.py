"""Benchmark of rounds with hundreds of clients on a real chain, server and committee.

All clients are in one process and send made-up gradients; keys, signatures, bundles, deliveries
over HTTPS and the roll are real. Nobody is audited: the cost of an audit does not depend
on the number of clients, and `opfl bench audit` measures it.
"""

from __future__ import annotations

import statistics
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from opfl_chain.bench.load_client import LoadClient
from opfl_chain.chain.bindings.types import Phases
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.jobs.localnet.clock import mining_at_once
from opfl_chain.jobs.localnet.daemon import NoProgress
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.mpc.session.ranks import MEMBERS, certificate_name
from opfl_chain.protocol.bundle import Bundle
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.render.text import bytes_in_words, markdown_table, seconds_in_words, terminal_table
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import TransportError

_WORKERS: Final = 8
"""Clients that send at the same time."""
_PHASES: Final = Phases(
    enrol=3000,
    deliver=40,
    roll=40,
    beacon=40,
    answer=40,
    attest=40,
    finalise=40,
    response=80,
)
"""Enrolments take at most a block each. No other phase is waited out."""
_RESULT_BYTES: Final = 1 << 16

PHASES: Final = ("deliver", "roll", "beacon", "judge", "sum", "finalise")
Tell = Callable[[str], None]
_WIDTH: Final = 118
_MEANING: Final = {
    "deliver": "from the first bundle that a client sends to the last acknowledgement",
    "roll": "from there to the roll on chain",
    "beacon": "from the roll to the seed on chain",
    "judge": "from the seed to the decided verdict",
    "sum": "from the verdict to the next model at two members",
    "finalise": "from there to the end of the round on chain",
}


@dataclass
class RoundLoad:
    """Measurements of one round."""

    held: int = 0
    """Clients whose gradients are in the aggregate."""
    seconds: dict[str, float] = field(default_factory=dict)
    bytes_per_member: list[int] = field(default_factory=lambda: [0] * MEMBERS)
    gas: dict[str, int] = field(default_factory=dict)
    """Keyed by the sender of the transactions: server or members."""


@dataclass
class Load:
    clients: int
    model: str
    coordinates: int
    enrol_gas: list[int]
    enrol_seconds: float
    rounds: list[RoundLoad]
    member_cpu_seconds: list[float]

    @property
    def report(self) -> dict[str, Any]:
        medians = {
            phase: round(statistics.median(each.seconds[phase] for each in self.rounds), 3)
            for phase in PHASES
        }
        # Opening the first round also aggregates the members' keys, once per job.
        usual = self.rounds[1:] or self.rounds
        gas = statistics.median(sum(each.gas.values()) for each in usual)
        return {
            "clients": self.clients,
            "rounds": len(self.rounds),
            "model": self.model,
            "coordinates": self.coordinates,
            "audit_rate": 0,
            "clients_held_per_round": min(each.held for each in self.rounds),
            "gas_per_client_and_round": round(gas / self.clients, 1),
            "gas_to_enrol_per_client": round(statistics.median(self.enrol_gas)),
            "seconds_per_phase": medians,
            "seconds_per_round": round(sum(medians.values()), 3),
            "bytes_per_member_and_round": self.rounds[-1].bytes_per_member,
            "cpu_seconds_per_member": self.member_cpu_seconds,
            "enrol_seconds": round(self.enrol_seconds, 3),
            "each_round": [
                {
                    "held": each.held,
                    "seconds": {name: round(s, 3) for name, s in each.seconds.items()},
                    "gas": each.gas,
                }
                for each in self.rounds
            ],
        }


def bench_load(clients: int, rounds: int, folder: Path, tell: Tell = lambda text: None) -> Load:
    """Play a job with `clients` clients; its files stay in the folder."""
    plan = Plan(
        clients=(None,) * clients,
        rounds=rounds,
        audit_rate=0.0,
        dataset="synthetic",
        score=False,
        phases=_PHASES,
    )
    with Localnet(plan, folder, tell) as net, ExitStack() as opened:
        for name in [name for name in net.daemons if name.startswith("client")]:
            del net.daemons[name]  # this process plays the clients
        pool = opened.enter_context(ThreadPoolExecutor(_WORKERS, "clients"))
        authority = folder / "certs" / "authority.pem"
        http = opened.enter_context(HttpClient(authority, seconds=120, attempts=8))
        return _LoadedJob(net, pool, http, tell).play()


class _LoadedJob:
    """All clients of a job, with measurements of each round."""

    def __init__(
        self, net: Localnet, pool: ThreadPoolExecutor, http: HttpClient, tell: Tell
    ) -> None:
        self._net = net
        self._pool = pool
        self._http = http
        self._tell = tell
        accounts = net.devnet.accounts[2 + len(net.job.roster) :]
        self._clients = [LoadClient(net.job, account) for account in accounts]

    def play(self) -> Load:
        self._tell(f"{len(self._clients)} clients enrol")
        started = time.monotonic()
        with mining_at_once(self._net.devnet):
            gas = list(self._pool.map(self._enrol, self._clients))
        enrolled = time.monotonic() - started
        self._net.start()
        rounds = [self._round(number) for number in range(self._net.job.terms.rounds)]
        cpu = [
            (self._net.health(certificate_name(rank)) or {}).get("cpu_seconds", 0.0)
            for rank in range(MEMBERS)
        ]
        job = self._net.job
        return Load(
            len(self._clients),
            job.policy.model.name,
            job.boundary.coordinates,
            gas,
            enrolled,
            rounds,
            cpu,
        )

    def _enrol(self, client: LoadClient) -> int:
        job, folder = self._net.job, self._net.folder / "senders"
        call = job.contracts.jobs.enrol(job.id, client.dataset_root, value=job.terms.client_deposit)
        with TransactionSender(self._net.devnet.rpc, client.account, folder) as sender:
            return sender.send(call, "enrol").gas_used

    def _round(self, number: int) -> RoundLoad:
        net, load, clock = self._net, RoundLoad(), _Clock()
        round_ = self._await(number, lambda found: True, "is open")
        self._tell(f"round {number}: clients make their contributions")
        made = list(self._pool.map(lambda client: client.contribution(number), self._clients))

        bundles = list(
            self._pool.map(
                lambda client, each: client.bundle(net.view, round_, each), self._clients, made
            )
        )
        self._tell(f"round {number}: deliveries")
        clock.start()
        for sizes in self._deliver(round_, bundles):
            load.bytes_per_member = [
                a + b for a, b in zip(load.bytes_per_member, sizes, strict=True)
            ]
        load.seconds["deliver"] = clock.lap()
        self._await(number, lambda found: found.roll is not None, "has its roll")
        load.seconds["roll"] = clock.lap()
        self._await(number, lambda found: found.seed is not None, "has its seed")
        load.seconds["beacon"] = clock.lap()

        self._tell(f"round {number}: verdict, sum and result")
        found = self._await(number, lambda found: found.verdict_hash is not None, "is decided")
        load.seconds["judge"] = clock.lap()
        net.wait_until(lambda: self._has_result(found), "two members have results")
        load.seconds["sum"] = clock.lap()
        found = self._await(number, lambda found: found.over is not None, "is over")
        load.seconds["finalise"] = clock.lap()
        load.held = self._held(found)
        load.gas = self._gas(found)
        return load

    def _deliver(self, round_: RoundView, bundles: Sequence[Bundle]) -> list[list[int]]:
        view = self._net.view
        return list(
            self._pool.map(
                lambda client, each: client.deliver(self._http, view, round_, each),
                self._clients,
                bundles,
            )
        )

    def _await(self, number: int, holds: Callable[[RoundView], bool], what: str) -> RoundView:
        net = self._net

        def held() -> bool:
            found = net.view.round(number)
            return found is not None and holds(found)

        net.wait_until(held, f"round {number} {what}")
        found = net.view.round(number)
        if found is None:
            raise NoProgress(f"round {number} disappeared from the chain")
        return found

    def _has_result(self, round_: RoundView) -> bool:
        """Return whether two members have opened the sum and signed the next model."""
        found = 0
        for rank in range(MEMBERS):
            daemon, path = self._net.daemons[certificate_name(rank)], f"/rounds/{round_.id}/result"
            try:
                self._net.http.get(daemon.url, certificate_name(rank), path, _RESULT_BYTES)
            except TransportError:
                continue
            found += 1
        return found >= MEMBERS - 1

    def _held(self, round_: RoundView) -> int:
        passes = self._net.view.decided_passes(round_)
        if passes is None or round_.over != "finalised":
            return 0
        return len(Verdict.decode(passes).passed)

    def _gas(self, round_: RoundView) -> dict[str, int]:
        """Return the gas of all transactions since the end of the previous round, by role."""
        before = self._net.view.round(round_.number - 1) if round_.number else None
        since = self._net.job.enrolment_end if before is None else before.over_at
        if since is None or round_.over_at is None:
            raise NoProgress(f"round {round_.number} did not end")
        rpc, used = self._net.devnet.rpc, {"server": 0, "members": 0}
        server = self._net.addresses["server"].lower()
        for number in range(since + 1, round_.over_at + 1):
            for receipt in rpc.request("eth_getBlockReceipts", hex(number)):
                role = "server" if receipt["from"].lower() == server else "members"
                used[role] += int(receipt["gasUsed"], 16)
        return used


class _Clock:
    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._since = time.monotonic()

    def lap(self) -> float:
        now = time.monotonic()
        passed, self._since = now - self._since, now
        return passed


def load_table(report: Mapping[str, Any]) -> Table:
    return terminal_table(
        ("phase", ">seconds", ">ms per client"),
        (row[:3] for row in _rows(report)),
        title=f"{report['clients_held_per_round']} of {report['clients']} clients in a round",
        caption=_gas(report),
    )


def load_markdown(report: Mapping[str, Any]) -> str:
    columns = ["phase", ">seconds", ">ms per client", "measured"]
    sizes = report["bytes_per_member_and_round"]
    received = ", ".join(bytes_in_words(size) for size in sizes)
    cpu = ", ".join(seconds_in_words(seconds, 0) for seconds in report["cpu_seconds_per_member"])
    text = (
        f"{report['clients_held_per_round']} of {report['clients']} clients were in each of"
        f" {report['rounds']} rounds. {_gas(report)} In a round the members received {received};"
        f" they used {cpu} of CPU time in all."
    )
    return f"{textwrap.fill(text, _WIDTH)}\n\n{markdown_table(columns, _rows(report))}"


def _rows(report: Mapping[str, Any]) -> list[list[str]]:
    phases = report["seconds_per_phase"]
    rows = [
        [name, f"{seconds:.2f}", _each(report, seconds), _MEANING[name]]
        for name, seconds in phases.items()
    ]
    total = report["seconds_per_round"]
    return [*rows, ["all", f"{total:.2f}", _each(report, total), ""]]


def _each(report: Mapping[str, Any], seconds: float) -> str:
    return f"{1000 * seconds / report['clients']:.1f}"


def _gas(report: Mapping[str, Any]) -> str:
    return (
        f"A round after the first cost {report['gas_per_client_and_round']:,.0f} gas for each"
        f" client, the committee's included; enrolling cost {report['gas_to_enrol_per_client']:,}"
        " once."
    )
