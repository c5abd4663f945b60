"""Hands stored transactions to the node, again and at a higher fee where that is needed."""

from __future__ import annotations

from collections.abc import Sequence

from opfl_chain.chain.errors import (
    AlreadyKnown,
    ChainError,
    NonceTooHigh,
    NonceTooLow,
    Underpriced,
)
from opfl_chain.chain.fees import FeePolicy
from opfl_chain.chain.rpc import Rpc, tohex
from opfl_chain.chain.sender_store import Attempt, SenderStore, State
from opfl_chain.chain.signer import Signer


class Broadcaster:
    def __init__(self, rpc: Rpc, store: SenderStore, signer: Signer, policy: FeePolicy) -> None:
        self._rpc = rpc
        self._store = store
        self._signer = signer
        self._policy = policy

    def send(self, attempts: Sequence[Attempt]) -> None:
        """Send what the store holds already. What the node finds too cheap is sent dearer."""
        for attempt in self._offer(attempts):
            self.bump(attempt)

    def send_unmined(self, chain_nonce: int) -> None:
        """Send all that the present chain has not executed, whatever we thought of it."""
        missing = self._store.from_nonce(chain_nonce)
        undone = [intent.key for intent in missing if intent.state is State.MINED]
        self._store.set_state(undone, State.PENDING)
        self.send([self._store.attempts(intent.nonce)[-1] for intent in missing])

    def bump(self, attempt: Attempt) -> None:
        """Replace by the same transaction at a higher fee, as far as the policy allows."""
        block, tip = self._rpc.batch_or_raise(
            [("eth_getBlockByNumber", ("latest", False)), ("eth_maxPriorityFeePerGas", ())]
        )
        current = self._policy.first(int(block["baseFeePerGas"], 16), int(tip, 16))
        fees = self._policy.bumped(attempt.fees, current)
        if fees.maximum > self._policy.limit:
            return  # the attempt stays in the pool until fees fall or the deadline passes
        replacement = self._signer.reprice(attempt, fees)
        self._store.add_attempt(replacement)
        self._offer([replacement])

    def _offer(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Returns those that the node found too cheap."""
        answers = self._rpc.batch([("eth_sendRawTransaction", (tohex(a.raw),)) for a in attempts])
        cheap = []
        for attempt, answer in zip(attempts, answers, strict=True):
            match answer:
                case Underpriced():
                    cheap.append(attempt)
                case AlreadyKnown() | NonceTooLow() | NonceTooHigh():
                    pass  # the node has it, has mined it, or waits for one before it
                case ChainError():
                    raise answer
        return cheap
