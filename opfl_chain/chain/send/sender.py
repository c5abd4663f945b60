"""Sends transactions so that every intent is executed exactly once, despite crashes.

An intent is a `Call` with an idempotency key of the caller's choice. Its transaction is signed and
stored before it is sent, and it keeps its nonce for ever: later attempts only raise the fee. So
the chain itself guarantees that at most one attempt is executed, and after a restart the same key
finds the stored transaction again instead of making a second one.

The account's nonce on the chain decides what is mined, never our records: every stored transaction
at or above that nonce is not executed on the current chain and is sent again. That one rule covers
crashes before sending, transactions dropped from pools, and reorganisations.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eth_account.signers.local import LocalAccount

from opfl_chain.chain import errors
from opfl_chain.chain.abi import Reverted
from opfl_chain.chain.contracts.contract import Call, Receipt
from opfl_chain.chain.rpc import Request, Rpc, tohex
from opfl_chain.chain.send.broadcaster import Broadcaster, Signer
from opfl_chain.chain.send.settlement import PendingIntent, Settlement, SettlementResult
from opfl_chain.chain.send.store import Attempt, FeePolicy, Intent, SenderStore, State, fingerprint
from opfl_chain.system.closing import Closing

_GAS_MARGIN_PERCENT = 25
DEADLINE_SECONDS = 120.0
RESEND_SECONDS = 15.0
_POLL_FIRST = 0.02
_POLL_LAST = 0.5


class TransactionSender(Closing):
    """The only sender for its key. Thread-safe; a second process is refused.

    `confirmations` is the number of blocks on top of a receipt's block before it counts, `deadline`
    the seconds to wait for that, `resend_after` the seconds after which the fee is raised. `pause`
    waits between two polls, for the given seconds or until a new block; `unmined` is called after
    each poll with the block at which an intent is not executed yet.
    """

    def __init__(
        self,
        rpc: Rpc,
        account: LocalAccount,
        folder: Path,
        *,
        fees: FeePolicy | None = None,
        confirmations: int = 0,
        deadline: float = DEADLINE_SECONDS,
        resend_after: float = RESEND_SECONDS,
        pause: Callable[[float], None] = time.sleep,
        unmined: Callable[[int, str], None] = lambda head, key: None,
    ) -> None:
        self.address = account.address
        self._rpc = rpc
        self._deadline = deadline
        self._pause = pause
        self._unmined = unmined
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

    def close(self) -> None:
        with self._lock:
            self._store.close()

    def send(self, call: Call, key: str) -> Receipt:
        """Execute the call once for this key, even if repeated, and return its receipt.

        Raises the contract's typed error if it reverts; nothing is sent if the gas estimate
        already reverts.
        """
        self.submit(call, key)
        return self.wait(key)

    def send_many(self, calls: Mapping[str, Call]) -> dict[str, Receipt]:
        """Execute many independent calls, by their keys, in as few requests as possible.

        Gas is estimated against the current state. Calls that depend on each other must be sent
        one after another, or with a fixed gas limit (`Call.with_gas`). If some fail, the first
        failure is raised after all have been tried.
        """
        self.submit_many(calls)
        outcomes = self._settle(list(calls), self._deadline)
        return {key: _receipt(outcomes[key]) for key in calls}

    def submit(self, call: Call, key: str) -> None:
        """Sign, store and send, without waiting. `wait` with the same key returns the receipt."""
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
                    raise errors.KeyReused(key, known.description, call.description)
                elif known.state is State.PENDING:
                    resumed = True
            if resumed:
                self._broadcaster.send_unmined(self._rpc.nonce(self.address))
            if new:
                signed = self._sign(new)
                self._store.add(signed)
                self._broadcaster.send([attempt for _, attempt in signed])

    def wait(self, key: str, deadline: float | None = None) -> Receipt:
        """Return the receipt of a submitted intent; ReceiptTimeout after `deadline` seconds."""
        seconds = self._deadline if deadline is None else deadline
        return _receipt(self._settle([key], seconds)[key])

    def pending(self) -> list[str]:
        """Return the keys of all intents not known to be executed."""
        with self._lock:
            return [intent.key for intent in self._store.pending()]

    def nonce_of(self, key: str) -> int | None:
        """Return the nonce of an intent, or None if it was never submitted."""
        with self._lock:
            intent = self._store.find(key)
            return None if intent is None else intent.nonce

    def next_nonce(self) -> int:
        """Return the nonce of the next new intent."""
        with self._lock:
            return max(self._store.next_nonce(), self._rpc.nonce(self.address, "pending"))

    def resume(self) -> dict[str, SettlementResult]:
        """Finish the intents of an earlier process; failures are returned, not raised."""
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
            if isinstance(answer, errors.ChainError):
                raise answer
        fees = self._policy.first(int(block["baseFeePerGas"], 16), int(tip, 16))
        if fees.maximum > self._policy.limit:
            raise errors.FeeTooHigh(next(iter(calls)), fees.maximum, self._policy.limit)
        nonce = max(self._store.next_nonce(), int(count, 16))
        available = int(balance, 16)
        signed = []
        for key, call in calls.items():
            gas = call.gas or _with_margin(estimates.pop(0), call, int(block["gasLimit"], 16))
            available -= call.value + gas * fees.maximum
            if available < 0:
                raise errors.InsufficientFunds(
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

    def _settle(self, keys: Sequence[str], seconds: float) -> dict[str, SettlementResult]:
        waiting = {key: PendingIntent() for key in keys}
        outcomes: dict[str, SettlementResult] = {}
        started = time.monotonic()
        pause = _POLL_FIRST
        while True:
            try:
                with self._lock:
                    outcomes |= self._settlement.poll(waiting)
            except errors.RpcUnavailable:
                pass  # the deadline below limits how long the node may be unavailable
            else:
                if waiting:
                    self._unmined(self._settlement.head, next(iter(waiting)))
            if not waiting:
                return outcomes
            if time.monotonic() - started > seconds:
                key = next(iter(waiting))
                with self._lock:
                    hashes = [attempt.hash for attempt in self._settlement.attempts(key)]
                raise errors.ReceiptTimeout(key, seconds, hashes)
            self._pause(pause)
            pause = min(pause * 1.5, _POLL_LAST)


def _receipt(outcome: SettlementResult) -> Receipt:
    if isinstance(outcome, Receipt):
        return outcome
    raise outcome


def _with_margin(estimate: Any, call: Call, block_limit: int) -> int:
    if isinstance(estimate, Reverted):
        estimate.context = call.description
    if isinstance(estimate, errors.ChainError):
        raise estimate
    gas = int(estimate, 16) + call.spare_gas
    # State changes between the estimate and the block, so add a margin within the block's limit.
    return max(gas, min(gas + gas * _GAS_MARGIN_PERCENT // 100, block_limit))
