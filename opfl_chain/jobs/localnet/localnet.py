"""Runs a whole job on one machine; leaving the context ends all processes.

No protocol logic is here: the daemons do everything, from their own files, over their own links.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.contracts.compiler import compile_contracts
from opfl_chain.chain.deployment import deploy
from opfl_chain.chain.devnet import StartedDevnet, start_devnet
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.chain.terms import budget
from opfl_chain.jobs.localnet.clock import Clock, DaemonReport, mining_at_once
from opfl_chain.jobs.localnet.daemon import Daemon, NoProgress, template_of_daemons
from opfl_chain.jobs.localnet.folder import JobFolder, roster_name
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.mpc.local import reserved_addresses
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.job import Job
from opfl_chain.roles.view.view import ChainView
from opfl_chain.system.closing import Closing
from opfl_chain.system.template import Template, can_fork
from opfl_chain.transport.client import HttpClient

_PAUSE_SECONDS = 0.02
_PAUSE_PART = 0.1
"""Pauses grow with the time that a block takes: each poll costs a TLS handshake on both sides."""
_LOOK_SECONDS = 0.1
"""Time for which daemons are polled before the chain is polled again, and the longest pause."""
_ANSWER_SECONDS = 2.0
_STUCK_SECONDS = 3600.0
"""Time limit of a single block, even on a slow machine."""

Tell = Callable[[str], None]


class Localnet(Closing):
    """`with Localnet(plan, folder) as net: net.start(); net.run()`"""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        tell: Tell = lambda text: None,
        template: Template | None = None,
    ) -> None:
        """`template` may serve several jobs; without it, the job loads one of its own."""
        self.plan = plan
        self._template = template
        self.folder = folder
        self._tell = tell
        self._open = ExitStack()
        self._returns: dict[str, Callable[[], None]] = {}
        self.daemons: dict[str, Daemon] = {}

    def __enter__(self) -> Self:
        try:
            self._prepare()
        except BaseException:
            self._open.close()
            raise
        return self

    def close(self) -> None:
        self._open.close()

    def _prepare(self) -> None:
        """Set up the chain, contracts, job and everybody's files, without starting anybody."""
        plan = self.plan
        template = self._template
        if template is None and can_fork():  # first, because it loads while the rest is set up
            template = template_of_daemons(self.folder / "template.log")
            self._open.enter_context(template)
        self._tell("compiling contracts and replays")
        compile_contracts()
        Replays(plan.policy).warm()
        boundary = plan.boundary
        self._tell("starting the chain")
        self.devnet: StartedDevnet = self._open.enter_context(
            start_devnet(
                plan.chain,
                mining="manual",
                accounts=2 + MEMBERS + len(plan.standbys) + len(plan.clients),
                log=self.folder / "chain.log",
            )
        )
        operator, server, *others = self.devnet.accounts
        roster = MEMBERS + len(plan.standbys)
        members, clients = others[:roster], others[roster:]
        with (
            mining_at_once(self.devnet),
            TransactionSender(self.devnet.rpc, operator, self.folder / "state") as sender,
        ):
            deployment = deploy(sender, self.devnet.rpc)
            deployment.write(self.folder / "deployment.json")
            contracts = deployment.connect(self.devnet.rpc)
            self.treasury = operator.address
            terms = plan.terms(
                [member.address for member in members],
                self.treasury,
            )
            call = contracts.jobs.create_job(
                terms, plan.policy.canonical_json, boundary.canonical_json, value=budget(terms)
            )
            created = JobCreated.in_receipt(sender.send(call, "create job"))
        self.deployment = deployment
        self.job = Job.find(self.devnet.rpc, deployment, created.job)
        self.addresses = {
            "server": server.address,
            **{roster_name(i): member.address for i, member in enumerate(members)},
            **{f"client-{i}": client.address for i, client in enumerate(clients)},
        }
        folder = JobFolder(self.folder, plan, self.devnet, created.job)
        at = self._open.enter_context(reserved_addresses(folder.addresses_needed))
        for daemon in folder.write(server, members, clients, at):
            daemon.template = template
            self.daemons[daemon.name] = daemon
        self._open.callback(self._stop_all)
        self.http = self._open.enter_context(
            HttpClient(self.folder / "certs" / "authority.pem", _ANSWER_SECONDS, attempts=1)
        )
        self._plain_http = self._open.enter_context(HttpClient(None, _ANSWER_SECONDS, attempts=1))
        self.clock = Clock(self.devnet, self._reports)
        self.view = ChainView(self.job, self.folder / "chain.sqlite")
        self._cursor = self._open.enter_context(
            self.view.cursor(self.devnet.rpc, deployment.block, 0)
        )

    # --- running

    def start(self, each: Callable[[], None] = lambda: None) -> None:
        """Start everybody, and wait until all have staked and enrolled."""
        self._tell(f"starting {len(self.daemons)} processes")
        for daemon in self.daemons.values():
            daemon.start()
        self.wait_until(self._all_there, "everybody has enrolled", each)

    def kill(self, name: str, blocks: int, on_return: Callable[[], None] = lambda: None) -> None:
        """Kill a daemon at once, and start it again so many blocks later.

        The clock goes on without it until then, and waits until it has caught up. So what it misses
        depends on blocks, and not on how long the machine takes to start a process.
        """
        self.daemons[name].kill()
        self.clock.planned[name] = self.devnet.rpc.block_number() + blocks
        self._returns[name] = on_return

    def _start_those_who_return(self) -> None:
        head = self.devnet.rpc.block_number()
        for name in [name for name, block in self.clock.planned.items() if block <= head]:
            del self.clock.planned[name]
            self.daemons[name].start()
            self._returns.pop(name)()

    def health(self, name: str) -> dict[str, Any] | None:
        """Return a daemon's health, or None if it does not answer."""
        client = name.startswith("client")
        return self.daemons[name].health(self._plain_http if client else self.http)

    def read_events(self) -> None:
        """Read new events from the chain."""
        self._cursor.catch_up()

    def wait_until(
        self,
        condition: Callable[[], bool],
        what: str,
        each: Callable[[], None] = lambda: None,
    ) -> None:
        """Run the job block by block until a condition holds.

        `each` is called at every block before the next one, and now and then in between.
        """
        moved = time.monotonic()
        while True:
            self.read_events()
            each()
            if condition():
                return
            self._start_those_who_return()
            if self._is_next_block(time.monotonic() - moved):
                moved = time.monotonic()
            elif time.monotonic() > moved + _STUCK_SECONDS:
                raise NoProgress(
                    f"timed out after {_STUCK_SECONDS:g} s without a block, waiting until {what}:"
                    f" {self.clock.waits_for}; see the logs in {self.folder}"
                )
            for daemon in self.daemons.values():
                if daemon.name in self._must_live:
                    daemon.require_alive()

    def _is_next_block(self, waited: float) -> bool:
        """Poll for a moment; return whether blocks were mined. The last ones came `waited` ago."""
        pause = min(max(_PAUSE_SECONDS, _PAUSE_PART * waited), _LOOK_SECONDS)
        until = time.monotonic() + _LOOK_SECONDS
        while not (moved := self.clock.tick()) and time.monotonic() < until:
            time.sleep(pause)
        return moved

    def _reports(self) -> dict[str, Callable[[], DaemonReport]]:
        """Return a function that fetches the report, for every running daemon that has not left."""
        return {
            name: lambda name=name: DaemonReport.of(self.health(name))  # type: ignore[misc]
            for name in self.started
            if self.daemons[name].alive and not self.daemons[name].is_leaving
        }

    def run(self, each: Callable[[], None] = lambda: None) -> None:
        """Run until the job is closed, its audits are decided and everybody has withdrawn."""
        self.wait_until(lambda: self.view.is_closed, "the job is over", each)
        self.wait_until(self._audits_decided, "all audits are decided", each)
        self._tell("skipping the unbonding delay")
        self.wait_until(self._all_gone, "everybody has withdrawn", each)

    @property
    def _must_live(self) -> set[str]:
        return set() if self.view.is_closed else self.started

    @property
    def started(self) -> set[str]:
        return {name for name, daemon in self.daemons.items() if daemon.started}

    def _all_there(self) -> bool:
        joined = all(self.view.joined(member) for member in self.job.roster)
        reachable = len(self.view.endpoints()) == len(self.job.roster)
        return joined and reachable and len(self.view.clients()) == len(self.plan.clients)

    def _stop_all(self) -> None:
        """Stop all daemons in parallel: each finishes its current step."""
        with ThreadPoolExecutor(max_workers=max(1, len(self.daemons))) as pool:
            list(pool.map(Daemon.stop, self.daemons.values()))

    def _audits_decided(self) -> bool:
        """Return whether every audit that did not pass is held and decided."""
        if self.view.undecided():
            return False
        clients = self.view.clients()
        for round_ in self.view.rounds():
            passes = self.view.decided_passes(round_) if round_.verdict_hash else None
            if passes is None:
                continue
            passed = Verdict.decode(passes).passed
            for address, client in clients.items():
                on_roll = self.view.on_roll(round_, address)
                audited = on_roll and self.view.is_audited(round_, address)
                held = self.view.charge(round_, address) is not None
                if audited and client.index not in passed and not held:
                    return False
        return True

    @property
    def _owners(self) -> list[tuple[Address, Role]]:
        clients = [(address, Role.CLIENT) for address in self.view.clients()]
        return clients + [(address, Role.MEMBER) for address in self.job.roster]

    def _all_gone(self) -> bool:
        """Return whether everybody has withdrawn, also those who are away at the moment."""
        if any(self.daemons[name].alive for name in self.started if name != "server"):
            return False
        deposits, job = self.job.contracts.deposits, self.job.id
        return not any(deposits.account(job, role, owner).balance for owner, role in self._owners)
