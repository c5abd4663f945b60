"""Signs calls as transactions, sends them, and raises fees that are too low."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_account.signers.local import LocalAccount
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from opfl_chain.chain.contracts.contract import Call
from opfl_chain.chain.errors import AlreadyKnown, ChainError, NonceTooHigh, NonceTooLow, Underpriced
from opfl_chain.chain.rpc import Rpc, tohex
from opfl_chain.chain.send.store import Attempt, FeePolicy, Fees, SenderStore, State


class Signer:
    def __init__(self, account: LocalAccount, chain_id: int) -> None:
        self.address = account.address
        self._account = account
        self._chain_id = chain_id

    def sign(self, call: Call, nonce: int, gas: int, fees: Fees) -> Attempt:
        fields = {"nonce": nonce, "gas": gas, "value": call.value, "data": call.data}
        return self._sign(fields if call.to is None else {**fields, "to": call.to}, fees)

    def reprice(self, attempt: Attempt, fees: Fees) -> Attempt:
        """Sign the same transaction with other fees."""
        decoded = TypedTransaction.from_bytes(HexBytes(attempt.raw)).as_dict()
        fields = {name: decoded[name] for name in ("nonce", "gas", "value", "data")}
        return self._sign({**fields, "to": decoded["to"]} if decoded["to"] else fields, fees)

    def _sign(self, fields: dict[str, Any], fees: Fees) -> Attempt:
        signed = self._account.sign_transaction(
            {
                **fields,
                "type": 2,
                "chainId": self._chain_id,
                "maxFeePerGas": fees.maximum,
                "maxPriorityFeePerGas": fees.priority,
            }
        )
        return Attempt(
            tohex(bytes(signed.hash)), fields["nonce"], bytes(signed.raw_transaction), fees
        )


class Broadcaster:
    def __init__(self, rpc: Rpc, store: SenderStore, signer: Signer, policy: FeePolicy) -> None:
        self._rpc = rpc
        self._store = store
        self._signer = signer
        self._policy = policy

    def send(self, attempts: Sequence[Attempt]) -> None:
        """Send stored attempts. Raise the fee of those the node considers underpriced."""
        for attempt in self._offer(attempts):
            self.bump(attempt)

    def send_unmined(self, chain_nonce: int) -> None:
        """Send everything not executed on the current chain, even if it was marked as mined."""
        missing = self._store.from_nonce(chain_nonce)
        undone = [intent.key for intent in missing if intent.state is State.MINED]
        self._store.set_state(undone, State.PENDING)
        self.send([self._store.attempts(intent.nonce)[-1] for intent in missing])

    def bump(self, attempt: Attempt) -> None:
        """Replace the transaction by the same one at a higher fee, up to the policy's limit."""
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
        """Send attempts and return those the node considers underpriced."""
        answers = self._rpc.batch([("eth_sendRawTransaction", (tohex(a.raw),)) for a in attempts])
        cheap = []
        for attempt, answer in zip(attempts, answers, strict=True):
            match answer:
                case Underpriced():
                    cheap.append(attempt)
                case AlreadyKnown() | NonceTooLow() | NonceTooHigh():
                    pass  # the node has it, has mined it, or waits for an earlier nonce
                case ChainError():
                    raise answer
        return cheap
