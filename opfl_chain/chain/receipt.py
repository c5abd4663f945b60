"""What the chain recorded: logs and receipts, with Python types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eth_typing import ChecksumAddress

from opfl_chain.chain.rpc import checksum, unhex


@dataclass(frozen=True)
class Log:
    """One event, not yet decoded; bindings know how."""

    address: ChecksumAddress
    topics: tuple[bytes, ...]
    data: bytes
    block_number: int
    block_hash: str
    transaction_hash: str
    index: int

    @staticmethod
    def from_rpc(log: Mapping[str, Any]) -> Log:
        return Log(
            address=checksum(log["address"]),
            topics=tuple(unhex(topic) for topic in log["topics"]),
            data=unhex(log["data"]),
            block_number=int(log["blockNumber"], 16),
            block_hash=log["blockHash"],
            transaction_hash=log["transactionHash"],
            index=int(log["logIndex"], 16),
        )


@dataclass(frozen=True)
class Receipt:
    """A transaction that was executed and did not revert."""

    transaction_hash: str
    block_number: int
    block_hash: str
    gas_used: int
    gas_price: int
    contract_address: ChecksumAddress | None
    logs: tuple[Log, ...]

    @staticmethod
    def from_rpc(receipt: Mapping[str, Any]) -> Receipt:
        created = receipt.get("contractAddress")
        return Receipt(
            transaction_hash=receipt["transactionHash"],
            block_number=int(receipt["blockNumber"], 16),
            block_hash=receipt["blockHash"],
            gas_used=int(receipt["gasUsed"], 16),
            gas_price=int(receipt["effectiveGasPrice"], 16),
            contract_address=checksum(created) if created else None,
            logs=tuple(Log.from_rpc(log) for log in receipt["logs"]),
        )
