"""Turns calls into signed transactions."""

from __future__ import annotations

from typing import Any

from eth_account.signers.local import LocalAccount
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from opfl_chain.chain.call import Call
from opfl_chain.chain.fees import Fees
from opfl_chain.chain.rpc import tohex
from opfl_chain.chain.sender_store import Attempt


class Signer:
    def __init__(self, account: LocalAccount, chain_id: int) -> None:
        self.address = account.address
        self._account = account
        self._chain_id = chain_id

    def sign(self, call: Call, nonce: int, gas: int, fees: Fees) -> Attempt:
        fields = {"nonce": nonce, "gas": gas, "value": call.value, "data": call.data}
        return self._sign(fields if call.to is None else {**fields, "to": call.to}, fees)

    def reprice(self, attempt: Attempt, fees: Fees) -> Attempt:
        """The same transaction for another fee."""
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
