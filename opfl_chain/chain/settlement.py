"""Waits until the chain has executed stored intents for good."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opfl_chain.chain.broadcaster import Broadcaster
from opfl_chain.chain.errors import NodeRefused, NonceTaken, UnknownIntent
from opfl_chain.chain.receipt import Receipt
from opfl_chain.chain.reverts import Reverted
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.sender_store import Attempt, SenderStore, State

_REBROADCAST_SECONDS = 1.0

Outcome = Receipt | Reverted | NonceTaken


@dataclass
class Progress:
    """How long an intent has been waited for."""

    sent_at: float = field(default_factory=time.monotonic)
    offered_at: float = field(default_factory=time.monotonic)
    unexplained_since: float | None = None
    """Since when its nonce is used while none of its attempts has a receipt."""


class Settlement:
    """`resend_after`: seconds without progress until the fee is raised, or a nonce is given up."""

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

    def poll(self, waiting: dict[str, Progress]) -> dict[str, Outcome]:
        """The outcomes that are final by now; their keys are taken out of `waiting`."""
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
        final_block = int(head, 16) - self._confirmations
        outcomes: dict[str, Outcome] = {}
        unmined = []
        for key, progress in waiting.items():
            receipt = next((found[a.hash] for a in attempts[key] if a.hash in found), None)
            if receipt is not None:
                progress.unexplained_since = None
                if int(receipt["blockNumber"], 16) <= final_block:
                    outcomes[key] = self._outcome(key, receipt)
            elif attempts[key][-1].nonce >= int(count, 16):
                unmined.append((progress, attempts[key][-1]))
            elif self._is_displaced(key, progress):
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

    def _is_displaced(self, key: str, progress: Progress) -> bool:
        """Whether a stranger has the nonce, now that it is used and no attempt has a receipt.

        Giving up is for good, so be sure: a reorganisation, or a provider with several nodes that
        are not equally far, can look the same for a while.
        """
        intent = self._store.find(key)
        if intent is not None and intent.state is State.DISPLACED:
            return True
        now = time.monotonic()
        progress.unexplained_since = progress.unexplained_since or now
        return now - progress.unexplained_since > self._resend_after

    def _push(self, unmined: Sequence[tuple[Progress, Attempt]], chain_nonce: int) -> None:
        now = time.monotonic()
        offer = False
        for progress, attempt in unmined:
            # Only the next nonce can be too cheap: those behind it wait for it.
            if now - progress.sent_at > self._resend_after and attempt.nonce == chain_nonce:
                progress.sent_at = progress.offered_at = now
                self._broadcaster.bump(attempt)
            elif now - progress.offered_at > _REBROADCAST_SECONDS:
                progress.offered_at = now
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
        """A receipt does not say; the same call on the block before usually does."""
        transaction = self._rpc.request("eth_getTransactionByHash", receipt["transactionHash"])
        again = {name: transaction[name] for name in ("from", "to", "value", "gas")}
        again["data"] = transaction["input"]
        try:
            self._rpc.request("eth_call", again, hex(int(receipt["blockNumber"], 16) - 1))
        except Reverted as error:
            return error
        except NodeRefused as error:  # out of gas, for one
            return Reverted(error.message)
        return Reverted("reverted when it was mined, though it did not on the block before")
