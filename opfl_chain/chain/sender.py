"""Sends transactions so that every intent is executed exactly once, whatever crashes.

An intent is a `Call` with an idempotency key of the caller's choice. Its transaction is signed and
stored before it is sent, and it keeps its nonce for ever: later attempts only raise the fee. So
the chain itself guarantees that at most one attempt is executed, and after a restart the same key
finds the stored transaction again instead of making a second one.

What is mined is decided by the chain's own nonce of the account, never by our memory: every stored
transaction at or above that nonce is not executed on the present chain and is sent again. That one
rule covers crashes before sending, pools that forget and reorganisations.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eth_account.signers.local import LocalAccount

from opfl_chain.chain.broadcaster import Broadcaster
from opfl_chain.chain.call import Call
from opfl_chain.chain.errors import (
    ChainError,
    FeeTooHigh,
    InsufficientFunds,
    KeyReused,
    ReceiptTimeout,
    RpcUnavailable,
)
from opfl_chain.chain.fees import FeePolicy
from opfl_chain.chain.receipt import Receipt
from opfl_chain.chain.reverts import Reverted
from opfl_chain.chain.rpc import Request, Rpc, tohex
from opfl_chain.chain.sender_store import Attempt, Intent, SenderStore, State, fingerprint
from opfl_chain.chain.settlement import Outcome, Progress, Settlement
from opfl_chain.chain.signer import Signer

_GAS_MARGIN_PERCENT = 25
_POLL_FIRST = 0.02
_POLL_LAST = 0.5


class TransactionSender:
    """The only sender of its key. Threads may share it; a second process is refused.

    `confirmations` is how many blocks must lie on top of a receipt's block before it counts,
    `deadline` how many seconds to wait for that, `resend_after` after how many the fee is raised.
    """

    def __init__(
        self,
        rpc: Rpc,
        account: LocalAccount,
        folder: Path,
        *,
        fees: FeePolicy | None = None,
        confirmations: int = 0,
        deadline: float = 120.0,
        resend_after: float = 15.0,
    ) -> None:
        self.address = account.address
        self._rpc = rpc
        self._deadline = deadline
        self._policy = fees or FeePolicy()
        self._lock = threading.RLock()
        chain_id = rpc.chain_id()
        self._signer = Signer(account, chain_id)
        self._store = SenderStore(
            folder / f"sender-{chain_id}-{self.address.lower()}.sqlite",
            rpc.genesis_hash(),
            self.address,
        )
        self._broadcaster = Broadcaster(rpc, self._store, self._signer, self._policy)
        self._settlement = Settlement(
            rpc,
            self._store,
            self._broadcaster,
            self.address,
            confirmations=confirmations,
            resend_after=resend_after,
        )

    def __enter__(self) -> TransactionSender:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._store.close()

    def send(self, call: Call, key: str) -> Receipt:
        """Execute the call once for this key, however often it is asked, and return its receipt.

        Raises the contract's typed error when it refuses, before anything is sent if it does so
        already now.
        """
        self.submit(call, key)
        return self.wait(key)

    def send_many(self, calls: Mapping[str, Call]) -> dict[str, Receipt]:
        """Execute many independent calls, by their keys, in as few requests as possible.

        Gas is estimated against the present state. Calls that need each other's effects have to
        be sent one after another, or carry their own gas (`Call.with_gas`). If some of them fail,
        the first failure is raised once all have been tried.
        """
        self.submit_many(calls)
        outcomes = self._settle(list(calls), self._deadline)
        return {key: _receipt(outcomes[key]) for key in calls}

    def submit(self, call: Call, key: str) -> None:
        """Store, sign and send, without waiting. `wait` with the same key brings the receipt."""
        self.submit_many({key: call})

    def submit_many(self, calls: Mapping[str, Call]) -> None:
        with self._lock:
            new: dict[str, Call] = {}
            resumed = False
            for key, call in calls.items():
                known = self._store.find(key)
                if known is None:
                    new[key] = call
                elif known.fingerprint != fingerprint(call):
                    raise KeyReused(key, known.description, call.description)
                elif known.state is State.PENDING:
                    resumed = True
            if resumed:
                self._broadcaster.send_unmined(self._rpc.nonce(self.address))
            if new:
                signed = self._sign(new)
                self._store.add(signed)
                self._broadcaster.send([attempt for _, attempt in signed])

    def wait(self, key: str, deadline: float | None = None) -> Receipt:
        """The receipt of a submitted intent; ReceiptTimeout after `deadline` seconds."""
        seconds = self._deadline if deadline is None else deadline
        return _receipt(self._settle([key], seconds)[key])

    def pending(self) -> list[str]:
        """The keys of all intents that are not known to be executed."""
        with self._lock:
            return [intent.key for intent in self._store.pending()]

    def nonce_of(self, key: str) -> int | None:
        """The nonce that an intent has, if it was ever submitted."""
        with self._lock:
            intent = self._store.find(key)
            return None if intent is None else intent.nonce

    def next_nonce(self) -> int:
        """The nonce that the next new intent will get."""
        with self._lock:
            return max(self._store.next_nonce(), self._rpc.nonce(self.address, "pending"))

    def resume(self) -> dict[str, Outcome]:
        """Finish what an earlier process began and left; failures are values here."""
        return self._settle(self.pending(), self._deadline)

    def _sign(self, calls: Mapping[str, Call]) -> list[tuple[Intent, Attempt]]:
        block, tip, balance, count, *estimates = self._rpc.batch(
            [
                ("eth_getBlockByNumber", ("latest", False)),
                ("eth_maxPriorityFeePerGas", ()),
                ("eth_getBalance", (self.address, "pending")),
                ("eth_getTransactionCount", (self.address, "pending")),
                *(self._estimate(call) for call in calls.values() if call.gas is None),
            ]
        )
        for answer in (block, tip, balance, count):
            if isinstance(answer, ChainError):
                raise answer
        fees = self._policy.first(int(block["baseFeePerGas"], 16), int(tip, 16))
        if fees.maximum > self._policy.limit:
            raise FeeTooHigh(next(iter(calls)), fees.maximum, self._policy.limit)
        nonce = max(self._store.next_nonce(), int(count, 16))
        available = int(balance, 16)
        signed = []
        for key, call in calls.items():
            gas = call.gas or _with_margin(estimates.pop(0), call, int(block["gasLimit"], 16))
            available -= call.value + gas * fees.maximum
            if available < 0:
                raise InsufficientFunds(
                    call.description,
                    f"{self.address} is short of {-available} wei for {call.value} wei and "
                    f"{gas} gas at {fees.maximum} wei",
                )
            intent = Intent(key, nonce, fingerprint(call), call.description)
            signed.append((intent, self._signer.sign(call, nonce, gas, fees)))
            nonce += 1
        return signed

    def _estimate(self, call: Call) -> Request:
        transaction = {"from": self.address, "data": tohex(call.data), "value": hex(call.value)}
        if call.to is not None:
            transaction["to"] = call.to
        return ("eth_estimateGas", (transaction, "pending"))

    def _settle(self, keys: Sequence[str], seconds: float) -> dict[str, Outcome]:
        waiting = {key: Progress() for key in keys}
        outcomes: dict[str, Outcome] = {}
        started = time.monotonic()
        pause = _POLL_FIRST
        while True:
            try:
                with self._lock:
                    outcomes |= self._settlement.poll(waiting)
            except RpcUnavailable:
                pass  # the deadline below decides how long a node may be away
            if not waiting:
                return outcomes
            if time.monotonic() - started > seconds:
                key = next(iter(waiting))
                with self._lock:
                    hashes = [attempt.hash for attempt in self._settlement.attempts(key)]
                raise ReceiptTimeout(key, seconds, hashes)
            time.sleep(pause)
            pause = min(pause * 1.5, _POLL_LAST)


def _receipt(outcome: Outcome) -> Receipt:
    if isinstance(outcome, Receipt):
        return outcome
    raise outcome


def _with_margin(estimate: Any, call: Call, block_limit: int) -> int:
    if isinstance(estimate, Reverted):
        estimate.context = call.description
    if isinstance(estimate, ChainError):
        raise estimate
    gas = int(estimate, 16) + call.spare_gas
    # State moves between the estimate and the block. Never beyond the block's own limit, though.
    return max(gas, min(gas + gas * _GAS_MARGIN_PERCENT // 100, block_limit))
