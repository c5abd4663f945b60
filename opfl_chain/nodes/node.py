"""What all daemons have in common: they follow the chain, and act whenever they have caught up.

A role is a function of the chain's tables and of its own state: `act` looks at both and does what
is due, once. So it makes no difference when it is killed or what it missed.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Self

from eth_account.signers.local import LocalAccount

from opfl_chain.chain.bindings.types import Role
from opfl_chain.chain.call import Call
from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.errors import NodeRefused, NonceTaken, RpcUnavailable, SendError
from opfl_chain.chain.heads import HeadWatcher
from opfl_chain.chain.keys import load_ethereum_key
from opfl_chain.chain.reverts import Reverted
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.sender import TransactionSender
from opfl_chain.chain.statement_signatures import sign_statement
from opfl_chain.nodes.chain_view import ChainView
from opfl_chain.nodes.errors import ModelMissing
from opfl_chain.nodes.job import Job
from opfl_chain.nodes.patience import Patience
from opfl_chain.nodes.peers import Peers
from opfl_chain.nodes.processor import own_seconds
from opfl_chain.nodes.settings import NodeSettings
from opfl_chain.nodes.state import State
from opfl_chain.nodes.traffic import Traffic
from opfl_chain.protocol.identifiers import JobId
from opfl_chain.protocol.statements import Statement
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.limits import Limits
from opfl_chain.transport.messages import Response
from opfl_chain.transport.routes import Route
from opfl_chain.transport.server import HttpServer

_BACKOFF_FIRST = 0.2
_BACKOFF_LAST = 5.0
_MOST_ATTEMPTS = 5
_TOLD_EVERY = 10.0
"""Seconds between two lines in the log on a duty that fails all the time."""


@dataclass(frozen=True)
class Moment:
    """Where the chain is when a daemon acts."""

    seen: int
    """The last block of which this daemon knows all events."""
    head: int
    """The last block that there is: a transaction goes into a later one."""


class Node(ABC):
    """A context manager; leaving it closes what it holds."""

    ROLE: ClassVar[str]
    SCHEMA: ClassVar[str] = ""

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self.log = logging.getLogger(f"opfl.{self.ROLE}")
        self._open = contextlib.ExitStack()
        self._wake = threading.Event()
        self._stopping = False
        self._moment: Moment | None = None
        self._sending = Patience()
        self._telling = Patience(_TOLD_EVERY, _TOLD_EVERY)
        self._answered = Traffic()
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
                TransactionSender(self.rpc, self.account, settings.state)
            )
            owner = f"{self.ROLE} {self.address} of job {self.job.id}"
            self.state = State(settings.state / "state.sqlite", owner, self.SCHEMA)
            opened.callback(self.state.close)
            self.view = ChainView(self.job, settings.state / "chain.sqlite")
            opened.callback(self.view.close)
            self.cursor = opened.enter_context(
                self.view.cursor(self.rpc, deployment.block, chain.confirmations)
            )
            self.peers = opened.enter_context(Peers(self.view, settings))
            self._open = opened.pop_all()

    @property
    def address(self) -> str:
        return self.account.address

    # --- what a role adds

    @abstractmethod
    def act(self, now: Moment) -> None:
        """Do what is due. Called again and again; each thing is done once."""

    @abstractmethod
    def routes(self) -> list[Route]:
        """What this daemon answers, beside its health."""

    @abstractmethod
    def health(self) -> dict[str, Any]:
        """What an operator wants to know of the role."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the job has nothing left for this daemon."""

    # --- running

    def run(self) -> None:
        """Serve and follow the chain until the job is over or `stop` is called."""
        with contextlib.ExitStack() as running:
            self.http = running.enter_context(
                HttpServer(
                    self.settings.listen,
                    [
                        Route("GET", "/health", lambda _: Response.json(self._health())),
                        *map(self._answered.counted, self.routes()),
                    ],
                    tls=self.peers.own_tls,
                    limits=Limits(**self.settings.limits.model_dump()),
                    name=self.ROLE,
                )
            )
            if self.settings.chain.ws_url:
                running.enter_context(HeadWatcher(self.settings.chain.ws_url, self._wake.set))
            running.callback(lambda: self.log.info("ended", extra=self._health()))
            self.log.info("listening", extra={"url": self.http.url})
            self._resume()
            self._follow()

    def stop(self) -> None:
        """Make `run` return after what it is doing. Safe from any thread and from signals."""
        self._stopping = True
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    @contextlib.contextmanager
    def duty(self, name: str) -> Iterator[None]:
        """What cannot be done for now must not keep us from what else is due."""
        try:
            yield
        except (NodeRefused, TransportError, ModelMissing) as error:
            if self._telling.is_due(name):
                self._telling.failed(name)
                self.log.warning("not done yet", extra={"duty": name, "reason": str(error)})

    def send(self, call: Call, key: str) -> bool:
        """Have a transaction executed once. A contract that refuses is no error: others are fast.

        Only what was mined and failed, or lost its nonce to a stranger, and is due all the same,
        is sent anew. What is refused again and again is tried less and less often.
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
            if not tried:
                self.log.info("executed", extra={"intent": name, "block": receipt.block_number})
            self._sending.succeeded(key)
            return True
        self._sending.failed(key)
        return False

    def sign(self, statement: Statement) -> bytes:
        return sign_statement(self.account, statement, self.job.domain)

    def take_money(self, role: Role, unbond: Call, now: Moment) -> bool:
        """Ask for what is locked, and withdraw it when it is due. True once nothing is left."""
        deposits = self.job.contracts.deposits
        unbonding = self.view.unbonding(self.address, role)
        if unbonding is None:
            self.send(unbond, "unbond")
            return False
        if now.head + 1 < unbonding[0]:
            return False
        if deposits.credit_of(self.address):
            # Credit may come again, so this is another intent every time.
            self.send(deposits.withdraw_credit(self.address), f"withdraw credit at {now.head}")
        if deposits.account(self.job.id, role, self.address).balance:
            self.send(deposits.withdraw(self.job.id, role), "withdraw")
        stake = deposits.account(self.job.id, role, self.address).balance
        return not stake and not deposits.credit_of(self.address)

    def _resume(self) -> None:
        """Finish what was sent before we were killed; what cannot be is tried again when due."""
        try:
            self.sender.resume()
        except (SendError, NodeRefused, RpcUnavailable) as error:
            self.log.warning("not all is finished of what was sent", extra={"reason": str(error)})

    def _follow(self) -> None:
        backoff = _BACKOFF_FIRST
        while not (self._stopping or self.done):
            self._wake.clear()
            try:
                step = self.cursor.step()
                if step.caught_up:
                    confirmations = self.settings.chain.confirmations
                    self._moment = Moment(step.position, step.target + confirmations)
                    self.act(self._moment)
                    self._wake.wait(self.settings.chain.poll_seconds)
                elif step.disturbed:
                    self._wake.wait(_BACKOFF_FIRST)
                elif step.rewound_to is not None:
                    self._moment = None  # who asks meanwhile is told that it is too early
                backoff = _BACKOFF_FIRST
            except (
                RpcUnavailable,
                NodeRefused,
                TransportError,
                ModelMissing,
                sqlite3.OperationalError,
            ) as error:
                # A node, a peer or a disk that is away comes back, and nothing is lost meanwhile.
                self.log.warning("trying again", extra={"reason": str(error), "seconds": backoff})
                self._wake.wait(backoff)
                backoff = min(2 * backoff, _BACKOFF_LAST)

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
            **self._answered.added_to(self.peers.traffic()),
            **self.health(),
        }

    def close(self) -> None:
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
