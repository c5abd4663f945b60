"""A daemon: follows the chain, performs its duties, and serves its peers."""

from __future__ import annotations

import contextlib
import logging
import math
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from eth_account.signers.local import LocalAccount

from opfl_chain.chain.abi import Reverted
from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.contracts.contract import Call
from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.errors import NodeRefused, NonceTaken, RpcUnavailable, SendError
from opfl_chain.chain.follow.cursor import Step
from opfl_chain.chain.follow.sources import HeadWatcher
from opfl_chain.chain.keys import load_ethereum_key, sign_statement
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.send.sender import DEADLINE_SECONDS, RESEND_SECONDS, TransactionSender
from opfl_chain.protocol.identifiers import JobId
from opfl_chain.protocol.statements import Statement
from opfl_chain.roles.job import Job
from opfl_chain.roles.patience import DUE_SECONDS
from opfl_chain.roles.peers import Peers
from opfl_chain.roles.progress import ENDING, Agenda, Place, Progress
from opfl_chain.roles.settings import ModelMissing, NodeSettings
from opfl_chain.roles.state import State
from opfl_chain.roles.view.records import RoundView
from opfl_chain.roles.view.view import ChainView
from opfl_chain.system.backoff import Backoff
from opfl_chain.system.closing import Closing
from opfl_chain.system.resources import own_seconds
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.limits import Limits
from opfl_chain.transport.routes import Response, Route
from opfl_chain.transport.server import HttpServer

_BACKOFF_FIRST = 0.2
_BACKOFF_LAST = 5.0
_MOST_ATTEMPTS = 5
_VIRTUAL_REQUEST = 600.0
"""Seconds for a request in virtual time, where a slow peer brings no deadline nearer."""
_VIRTUAL_DEADLINE, _VIRTUAL_RESEND = 3600.0, 600.0
"""Seconds for a block that comes when everybody is ready: a higher fee would not bring it."""
_TOLD_EVERY = 10.0
"""Seconds between log lines about a duty that keeps failing."""


@dataclass(frozen=True)
class Moment:
    """The position of the chain when a daemon acts.

    A block that is asked about and has not come yet goes on the agenda: the daemon acts at it.
    """

    seen: int
    """The last block whose events this daemon knows."""
    head: int
    """The latest block: a transaction goes into a later one."""
    agenda: Agenda = field(default_factory=Agenda, compare=False)

    def has_come(self, block: int) -> bool:
        """Return whether the chain has this block."""
        if self.head < block:
            self.agenda.note(block)
        return self.head >= block

    def has_seen(self, block: int) -> bool:
        """Return whether all events up to a block are known."""
        if self.seen < block:
            self.agenda.note(block + self.head - self.seen)
        return self.seen >= block

    def knows_audited(self, round_: RoundView) -> bool:
        """Return whether it is known who is audited in a round."""
        if round_.roll is None:
            return False
        return round_.seed is not None or self.has_seen(round_.schedule.beacon)


class Node(Closing, ABC):
    """A context manager; leaving it closes all resources."""

    ROLE: ClassVar[str]
    SCHEMA: ClassVar[str] = ""
    DUE_SECONDS: ClassVar[float] = DUE_SECONDS
    """Time in which peers may answer, without being asked less."""

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self.log = logging.getLogger(f"opfl.{self.ROLE}")
        self._open = contextlib.ExitStack()
        self._wake = threading.Event()
        self._stirred = threading.Event()
        self._new_block = threading.Event()
        self._stopping = False
        self._moment: Moment | None = None
        self.agenda = Agenda()
        self.progress = Progress()
        self._sending = self.backoff()
        self._telling = Backoff(_TOLD_EVERY, _TOLD_EVERY)
        self.started = time.monotonic()
        chain = settings.chain
        with contextlib.ExitStack() as opened:
            self.rpc = opened.enter_context(Rpc(chain.rpc_url))
            deployment = Deployment.read(chain.deployment)
            self.job = Job.find(self.rpc, deployment, JobId(chain.job))
            self.account: LocalAccount = load_ethereum_key(
                settings.account.keystore, settings.account.password()
            )
            self.sender = opened.enter_context(
                TransactionSender(
                    self.rpc,
                    self.account,
                    settings.state,
                    pause=self._await_block,
                    unmined=self.progress.unmined,
                    deadline=_VIRTUAL_DEADLINE if self._in_virtual_time else DEADLINE_SECONDS,
                    resend_after=_VIRTUAL_RESEND if self._in_virtual_time else RESEND_SECONDS,
                )
            )
            owner = f"{self.ROLE} {self.address} of job {self.job.id}"
            self.state = State(settings.state / "state.sqlite", owner, self.SCHEMA)
            opened.callback(self.state.close)
            self.view = ChainView(self.job, settings.state / "chain.sqlite")
            opened.callback(self.view.close)
            self.cursor = opened.enter_context(
                self.view.cursor(self.rpc, deployment.block, chain.confirmations)
            )
            self.peers = opened.enter_context(Peers(self.view, settings, self.DUE_SECONDS))
            self._open = opened.pop_all()

    @property
    def address(self) -> str:
        return self.account.address

    @property
    def moment(self) -> Moment | None:
        """The position at which this daemon last acted; None until it has caught up."""
        return self._moment

    # --- implemented by roles

    @abstractmethod
    def act(self, now: Moment) -> None:
        """Perform pending duties. Called repeatedly; each duty is performed once."""

    def audit(self) -> tuple[str | None, str | None]:
        """The audit that is under way, and the one to which peers still have to come."""
        return None, None

    @abstractmethod
    def routes(self) -> list[Route]:
        """Routes of this daemon, beside its health."""

    @abstractmethod
    def health(self) -> dict[str, Any]:
        """Health of the role, for its operator."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Return whether this daemon has nothing left to do in the job."""

    # --- running

    def run(self) -> None:
        """Serve and follow the chain until the job is over or `stop` is called."""
        with contextlib.ExitStack() as running:
            self.http = running.enter_context(
                HttpServer(
                    self.settings.listen,
                    [
                        Route("GET", "/health", lambda _: Response.json(self._health())),
                        *map(self.progress.counted, map(self.peers.traffic.counted, self.routes())),
                    ],
                    tls=self.peers.own_tls,
                    limits=self.limits,
                    name=self.ROLE,
                )
            )
            if self.settings.chain.ws_url:
                running.enter_context(HeadWatcher(self.settings.chain.ws_url, self._see_head))
            running.callback(lambda: self.log.info("ended", extra=self._health()))
            self.log.info("listening", extra={"url": self.http.url})
            self._resume()
            self._follow()

    def stop(self) -> None:
        """Make `run` return after the current step. Safe from any thread and from signals."""
        self._stopping = True
        self._wake.set()

    def wake(self) -> None:
        """Act again without waiting for a new block. Safe from any thread."""
        self._stirred.set()
        self._wake.set()

    def backoff(self, first: float = 0.25, last: float = 5.0) -> Backoff:
        """Pauses in seconds; in virtual time a second is a block."""
        if not self._in_virtual_time:
            return Backoff(first, last)
        return Backoff(
            first,
            last,
            clock=lambda: float(self.agenda.head),
            alarm=lambda when: self.agenda.note(math.ceil(when)),
            aligned=True,
        )

    @property
    def limits(self) -> Limits:
        """Limits of the server of this daemon."""
        limits = Limits(**self.settings.limits.model_dump())
        if not self._in_virtual_time:
            return limits
        return replace(
            limits,
            head_seconds=_VIRTUAL_REQUEST,
            receive_seconds=_VIRTUAL_REQUEST,
            answer_seconds=_VIRTUAL_REQUEST,
        )

    @property
    def _in_virtual_time(self) -> bool:
        return self.settings.chain.time == "virtual"

    def _see_head(self) -> None:
        self._new_block.set()
        self._wake.set()

    def _await_block(self, seconds: float) -> None:
        """Wait for the next block, but not for long: its announcement may be lost."""
        self._new_block.wait(seconds)
        self._new_block.clear()

    @contextlib.contextmanager
    def duty(self, name: str) -> Iterator[None]:
        """Log a failed duty and continue with the rest."""
        try:
            yield
        except (NodeRefused, TransportError, ModelMissing) as error:
            self.agenda.again()
            if self._telling.is_due(name):
                self._telling.failed(name)
                self.log.warning("duty failed", extra={"duty": name, "reason": str(error)})

    def send(self, call: Call, key: str) -> bool:
        """Execute a transaction once. A refusal is not an error: others may have been faster.

        A transaction is sent anew only if it was mined and failed, or lost its nonce to another
        sender, and is still due. Repeated refusals are retried less and less often.
        """
        if not self._sending.is_due(key):
            return False
        for name in (key, *(f"{key}, attempt {n}" for n in range(2, _MOST_ATTEMPTS + 1))):
            tried = self.sender.nonce_of(name) is not None
            try:
                receipt = self.sender.send(call, name)
            except (Reverted, SendError) as error:
                if tried and isinstance(error, Reverted | NonceTaken):
                    continue
                self._sending.failed(key)
                self.log.info("not executed", extra={"intent": name, "reason": str(error)})
                return False
            finally:
                self.progress.sent()
            if not tried or receipt.block_number > self.agenda.head:
                self.log.info("executed", extra={"intent": name, "block": receipt.block_number})
            self._sending.succeeded(key)
            return True
        self._sending.failed(key)
        return False

    def send_all(self, calls: Mapping[str, Call]) -> None:
        """Have transactions that do not need each other executed, in one block where possible."""
        new = {key: call for key, call in calls.items() if self.sender.nonce_of(key) is None}
        if len(new) > 1:
            with contextlib.suppress(Reverted, SendError):  # then each is sent by itself
                self.sender.submit_many(new)
        for key, call in calls.items():
            self.send(call, key)

    def sign(self, statement: Statement) -> bytes:
        return sign_statement(self.account, statement, self.job.domain)

    def is_stillborn(self, now: Moment) -> bool:
        """Return whether no round will ever be opened."""
        return now.has_seen(self.job.enrolment_end) and self.view.is_stillborn(now.seen)

    def take_money(self, role: Role, unbond: Call, now: Moment) -> bool:
        """Unbond what is locked, and withdraw it when due. Return whether nothing is left."""
        deposits = self.job.contracts.deposits
        unbonding = self.view.unbonding(self.address, role)
        if unbonding is None:
            self.send(unbond, "unbond")
            return False
        if not now.has_come(unbonding[0] - 1):
            return False
        if deposits.credit_of(self.address):
            # More credit may come later, so each withdrawal is a new intent.
            self.send(deposits.withdraw_credit(self.address), f"withdraw credit at {now.head}")
        if deposits.account(self.job.id, role, self.address).balance:
            self.send(deposits.withdraw(self.job.id, role), "withdraw")
        stake = deposits.account(self.job.id, role, self.address).balance
        return not stake and not deposits.credit_of(self.address)

    def _resume(self) -> None:
        """Finish transactions sent before a restart; the rest is retried when due."""
        try:
            self.sender.resume()
        except (SendError, NodeRefused, RpcUnavailable) as error:
            self.log.warning("could not finish earlier transactions", extra={"reason": str(error)})
        finally:
            self.progress.sent()

    def _follow(self) -> None:
        backoff = _BACKOFF_FIRST
        while not (self._stopping or self.done):
            self._wake.clear()
            try:
                step = self.cursor.step()
                if step.caught_up:
                    self._act_at(step)
                    self._wake.wait(self.settings.chain.poll_seconds)
                elif step.disturbed:
                    self._wake.wait(_BACKOFF_FIRST)
                elif step.rewound_to is not None:
                    self._moment = None  # requests are refused as too early meanwhile
                backoff = _BACKOFF_FIRST
            except (
                RpcUnavailable,
                NodeRefused,
                TransportError,
                ModelMissing,
                sqlite3.OperationalError,
            ) as error:
                # Unavailable nodes, peers and disks come back, and nothing is lost meanwhile.
                self.progress.begin("retrying after a failure")
                self.log.warning("retrying", extra={"reason": str(error), "seconds": backoff})
                self._wake.wait(backoff)
                backoff = min(2 * backoff, _BACKOFF_LAST)
        self.progress.begin(ENDING)

    def _act_at(self, step: Step) -> None:
        """Act, unless in virtual time nothing has happened since the last time."""
        head = step.target + self.settings.chain.confirmations
        place = Place(step.position, step.hash, head)
        idle = not self._stirred.is_set() and self.progress.is_settled_at(place)
        if idle and self._in_virtual_time:
            return
        self.progress.begin("acting")
        self._stirred.clear()
        self.agenda.begin(head)
        self._moment = Moment(step.position, head, self.agenda)
        self.peers.patience.begin()
        self.act(self._moment)
        self.progress.settle(place, self.agenda.next_block)

    def _health(self) -> dict[str, Any]:
        moment = self._moment
        return {
            "role": self.ROLE,
            "address": self.address,
            "job": self.job.id,
            "block": moment.seen if moment else None,
            "head": moment.head if moment else None,
            "uptime_seconds": round(time.monotonic() - self.started, 1),
            "cpu_seconds": round(own_seconds(), 2),
            **self.progress.report(self._stirred.is_set(), *self.audit()),
            **self.peers.traffic.report(),
            **self.health(),
        }

    def close(self) -> None:
        self._open.close()
