"""Waits for the final outcome of stored intents on the chain."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opfl_chain.chain.abi import Reverted
from opfl_chain.chain.contracts.contract import Receipt
from opfl_chain.chain.errors import NodeRefused, NonceTaken, UnknownIntent
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.send.broadcaster import Broadcaster
from opfl_chain.chain.send.store import Attempt, SenderStore, State

_REBROADCAST_SECONDS = 1.0

SettlementResult = Receipt | Reverted | NonceTaken


@dataclass
class PendingIntent:
    """Timestamps of a pending intent."""

    sent_at: float = field(default_factory=time.monotonic)
    offered_at: float = field(default_factory=time.monotonic)
    unexplained_since: float | None = None
    """First time its nonce was found used while none of its attempts had a receipt."""


class Settlement:
    """Polls receipts. `resend_after`: seconds until the fee is raised or a nonce given up."""

    def __init__(
        self,
        rpc: Rpc,
        store: SenderStore,
        broadcaster: Broadcaster,
        address: str,
        *,
        confirmations: int,
        resend_after: float,
    ) -> None:
        self._rpc = rpc
        self._store = store
        self._broadcaster = broadcaster
        self._address = address
        self._confirmations = confirmations
        self._resend_after = resend_after
        self.head = 0
        """The last block at the last look at the chain."""

    def poll(self, waiting: dict[str, PendingIntent]) -> dict[str, SettlementResult]:
        """Return the outcomes that are final, and remove their keys from `waiting`."""
        attempts = {key: self.attempts(key) for key in waiting}
        hashes = [attempt.hash for key in waiting for attempt in attempts[key]]
        head, count, *answers = self._rpc.batch_or_raise(
            [
                ("eth_blockNumber", ()),
                ("eth_getTransactionCount", (self._address, "latest")),
                *(("eth_getTransactionReceipt", (hash_,)) for hash_ in hashes),
            ]
        )
        found = {answer["transactionHash"]: answer for answer in answers if answer}
        self.head = int(head, 16)
        final_block = self.head - self._confirmations
        outcomes: dict[str, SettlementResult] = {}
        unmined = []
        for key, pending in waiting.items():
            receipt = next((found[a.hash] for a in attempts[key] if a.hash in found), None)
            if receipt is not None:
                pending.unexplained_since = None
                if int(receipt["blockNumber"], 16) <= final_block:
                    outcomes[key] = self._outcome(key, receipt)
            elif attempts[key][-1].nonce >= int(count, 16):
                intent = self._store.find(key)
                if intent is not None and intent.state is State.MINED:
                    pending.offered_at = -math.inf  # a reorganisation took it back, and the pool
                unmined.append((pending, attempts[key][-1]))
            elif self._is_displaced(key, pending):
                self._store.set_state([key], State.DISPLACED)
                outcomes[key] = NonceTaken(key, attempts[key][-1].nonce, self._address)
        executed = [key for key, outcome in outcomes.items() if not isinstance(outcome, NonceTaken)]
        self._store.set_state(executed, State.MINED)
        self._push(unmined, int(count, 16))
        for key in outcomes:
            del waiting[key]
        return outcomes

    def attempts(self, key: str) -> list[Attempt]:
        intent = self._store.find(key)
        if intent is None:
            raise UnknownIntent(key)
        return self._store.attempts(intent.nonce)

    def _is_displaced(self, key: str, pending: PendingIntent) -> bool:
        """Return whether a foreign transaction used the nonce, given that no attempt has a receipt.

        Giving up is irrevocable, so wait first: a reorganisation, or a provider whose nodes are not
        in sync, can look the same for a while.
        """
        intent = self._store.find(key)
        if intent is not None and intent.state is State.DISPLACED:
            return True
        now = time.monotonic()
        pending.unexplained_since = pending.unexplained_since or now
        return now - pending.unexplained_since > self._resend_after

    def _push(self, unmined: Sequence[tuple[PendingIntent, Attempt]], chain_nonce: int) -> None:
        now = time.monotonic()
        offer = False
        for pending, attempt in unmined:
            # Only the next nonce can be underpriced: later ones wait for it.
            if now - pending.sent_at > self._resend_after and attempt.nonce == chain_nonce:
                pending.sent_at = pending.offered_at = now
                self._broadcaster.bump(attempt)
            elif now - pending.offered_at > _REBROADCAST_SECONDS:
                pending.offered_at = now
                offer = True
        if offer:
            self._broadcaster.send_unmined(chain_nonce)

    def _outcome(self, key: str, receipt: Mapping[str, Any]) -> Receipt | Reverted:
        if int(receipt["status"], 16) == 1:
            return Receipt.from_rpc(receipt)
        error = self._why_reverted(receipt)
        intent = self._store.find(key)
        error.context = f"{intent.description if intent else key} ({receipt['transactionHash']})"
        return error

    def _why_reverted(self, receipt: Mapping[str, Any]) -> Reverted:
        """Repeat the call on the block before, because a receipt has no revert reason."""
        transaction = self._rpc.request("eth_getTransactionByHash", receipt["transactionHash"])
        again = {name: transaction[name] for name in ("from", "to", "value", "gas")}
        again["data"] = transaction["input"]
        try:
            self._rpc.request("eth_call", again, hex(int(receipt["blockNumber"], 16) - 1))
        except Reverted as error:
            return error
        except NodeRefused as error:  # for example out of gas
            return Reverted(error.message)
        return Reverted("reverted when mined, although it succeeds on the block before")
