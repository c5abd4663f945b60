"""Starts a whole job on one machine and watches it; leaving it ends everything.

Nothing of the protocol is here: the daemons do it all, from their own files, over their own links.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from opfl_chain.calibration.reference import reference_boundary
from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.chain.bindings.types import Role, SlashStatus
from opfl_chain.chain.compiler import compile_contracts
from opfl_chain.chain.deployment import deploy
from opfl_chain.chain.devnet import StartedDevnet, start_devnet
from opfl_chain.chain.sender import TransactionSender
from opfl_chain.localnet.daemon import Daemon
from opfl_chain.localnet.errors import NoProgress
from opfl_chain.localnet.folder import JobFolder
from opfl_chain.localnet.plan import Plan
from opfl_chain.mpc.ranks import MEMBERS
from opfl_chain.mpc.replays import Replays
from opfl_chain.nodes.chain_view import ChainView
from opfl_chain.nodes.job import Job
from opfl_chain.nodes.judging import WARM_SIZES
from opfl_chain.protocol.identifiers import Address
from opfl_chain.transport.client import HttpClient

_POLL_SECONDS = 0.1
_START_SECONDS = 180.0
_MINED_AT_ONCE = 50
"""Everybody reads every block, so that more of them take a busy machine too long for one answer."""

_BUSY = {"audit": "no answer"}

Tell = Callable[[str], None]


class Localnet:
    """`with Localnet(plan, folder) as net: net.start(); net.run()`"""

    def __init__(self, plan: Plan, folder: Path, tell: Tell = lambda text: None) -> None:
        self.plan = plan
        self.folder = folder
        self._tell = tell
        self._open = ExitStack()
        self.daemons: dict[str, Daemon] = {}

    def __enter__(self) -> Localnet:
        try:
            self._prepare()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def _prepare(self) -> None:
        """Chain, contracts, job and everybody's files; nobody has started yet."""
        plan = self.plan
        self._tell("compiling contracts and replays")
        compile_contracts()
        replays = Replays(plan.policy)
        for size in WARM_SIZES:
            replays(size)
        boundary = reference_boundary(plan.policy)
        self._tell("starting the chain")
        self.devnet: StartedDevnet = self._open.enter_context(
            start_devnet(
                plan.chain,
                block_time=plan.block_seconds,
                accounts=2 + MEMBERS + len(plan.clients),
                log=self.folder / "chain.log",
            )
        )
        operator, server, *others = self.devnet.accounts
        members, clients = others[:MEMBERS], others[MEMBERS:]
        with TransactionSender(self.devnet.rpc, operator, self.folder / "state") as sender:
            deployment = deploy(sender, self.devnet.rpc)
            deployment.write(self.folder / "deployment.json")
            contracts = deployment.connect(self.devnet.rpc)
            self.treasury = operator.address
            terms = plan.terms(
                boundary,
                [member.address for member in members],
                server.address,
                self.treasury,
            )
            call = contracts.jobs.create_job(
                terms, plan.policy.canonical_json, boundary.canonical_json
            )
            created = JobCreated.in_receipt(sender.send(call, "create job"))
        self.deployment = deployment
        self.job = Job.find(self.devnet.rpc, deployment, created.job)
        self.addresses = {
            "server": server.address,
            **{f"member-{i}": member.address for i, member in enumerate(members)},
            **{f"client-{i}": client.address for i, client in enumerate(clients)},
        }
        folder = JobFolder(self.folder, plan, self.devnet, created.job)
        for daemon in folder.write(server, members, clients):
            self.daemons[daemon.name] = daemon
        self._open.callback(self._stop_all)
        self.http = self._open.enter_context(
            HttpClient(self.folder / "certs" / "authority.pem", seconds=5, attempts=1)
        )
        self._plain_http = self._open.enter_context(HttpClient(None, seconds=5, attempts=1))
        self.view = ChainView(self.job, self.folder / "watch.sqlite")
        self._cursor = self._open.enter_context(
            self.view.cursor(self.devnet.rpc, deployment.block, 0)
        )

    # --- running

    def start(self, each: Callable[[], None] = lambda: None) -> None:
        """Start everybody, wait until all have staked and enrolled, and end the enrolment."""
        self._tell(f"starting {len(self.daemons)} processes")
        for daemon in self.daemons.values():
            daemon.start()
        self.wait_until(self._all_there, _START_SECONDS, "everybody has enrolled", each)
        self.wait_until(self._all_prepared, _START_SECONDS, "members are ready to audit", each)
        deadline = self.job.first_block + self.plan.phases.enrol
        self.mine_to(deadline + 1)

    def health(self, name: str) -> dict[str, Any] | None:
        """What a daemon says of itself, or None if it does not answer."""
        client = name.startswith("client")
        return self.daemons[name].health(self._plain_http if client else self.http)

    def watch(self) -> None:
        """Read what has happened on chain."""
        self._cursor.catch_up()

    def wait_until(
        self,
        condition: Callable[[], bool],
        seconds: float,
        what: str,
        each: Callable[[], None] = lambda: None,
    ) -> None:
        """Follow the chain until a condition holds."""
        deadline = time.monotonic() + seconds
        while True:
            self.watch()
            each()
            if condition():
                return
            if time.monotonic() > deadline:
                raise NoProgress(f"after {seconds:g} s it is not so that {what}; see {self.folder}")
            for daemon in self.daemons.values():
                if daemon.name in self._must_live:
                    daemon.require_alive()
            time.sleep(_POLL_SECONDS)

    def run(self, seconds: float, each: Callable[[], None] = lambda: None) -> None:
        """Until the job is closed, its slashes are settled and clients have their money back."""
        self.wait_until(lambda: self.view.is_closed, seconds, "the job is over", each)
        self.wait_until(self._slashes_settled, seconds, "all slashes are settled", each)
        self.wait_until(self.has_attested_all, seconds, "members have attested all verdicts", each)
        self._tell("the unbonding delay passes")
        self.wait_until(self._all_unbonding, 60, "everybody asks for its money", each)
        self.mine_to(self.devnet.rpc.block_number() + self.job.terms.unbonding_delay + 1)
        self.wait_until(self._all_gone, 60, "everybody has its money", each)

    def mine_to(self, block: int) -> None:
        while (missing := block - self.devnet.rpc.block_number()) > 0:
            self.devnet.mine(min(missing, _MINED_AT_ONCE))

    def has_attested_all(self) -> bool:
        """Whether no honest member can attest any more what was decided without it.

        One that was away may find out after the others have ended a round, until its deadline.
        """
        honest = {
            self.addresses[f"member-{i}"]
            for i, cheat in enumerate(self.plan.members)
            if cheat is None
        }
        deadlines = [
            round_.schedule.attest
            for round_ in self.view.rounds()
            if round_.verdict_hash is not None
            and not honest <= set(self.view.attestations(round_.id))
        ]
        return not deadlines or self.devnet.rpc.block_number() >= max(deadlines)

    @property
    def _must_live(self) -> set[str]:
        return set() if self.view.is_closed else self.started

    @property
    def started(self) -> set[str]:
        return {name for name, daemon in self.daemons.items() if daemon.started}

    def _all_there(self) -> bool:
        joined = all(self.view.has_joined(member) for member in self.job.members)
        reachable = len(self.view.endpoints()) == MEMBERS
        return joined and reachable and len(self.view.clients()) == len(self.plan.clients)

    def _all_prepared(self) -> bool:
        """Members load their replays when they start, which takes what clients need as well."""
        members = [name for name in self.daemons if name.startswith("member")]
        return all((self.health(name) or _BUSY)["audit"] is None for name in members)

    def _stop_all(self) -> None:
        """All at once: each finishes the step that it is in."""
        with ThreadPoolExecutor(max_workers=max(1, len(self.daemons))) as pool:
            list(pool.map(Daemon.stop, self.daemons.values()))

    def _slashes_settled(self) -> bool:
        """Whether all faults are paid for or vetoed, or can not be paid for any more."""
        head = self.devnet.rpc.block_number()
        addresses = {client.index: client.address for client in self.view.clients().values()}
        for round_ in self.view.rounds():
            verdict = self.view.decided_verdict(round_) if round_.verdict_hash else None
            for fault in verdict.faults if verdict else ():
                slash = self.view.slash(round_.number, addresses[fault.client])
                if slash is None and head < round_.schedule.request:
                    return False
                if slash is not None and slash.status is SlashStatus.REQUESTED:
                    return False
        return True

    @property
    def _owners(self) -> list[tuple[Address, Role]]:
        clients = [(address, Role.CLIENT) for address in self.view.clients()]
        return clients + [(address, Role.MEMBER) for address in self.job.members]

    def _all_unbonding(self) -> bool:
        return all(self.view.unbonding(*each) is not None for each in self._owners)

    def _all_gone(self) -> bool:
        """Also those who are away just now have to take their money."""
        if any(self.daemons[name].alive for name in self.started if name != "server"):
            return False
        deposits, job = self.job.contracts.deposits, self.job.id
        return not any(deposits.account(job, role, owner).balance for owner, role in self._owners)
