"""A state-changing call, prepared by a binding and carried out by a `TransactionSender`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eth_typing import ChecksumAddress


@dataclass(frozen=True)
class Call:
    """`to` is None for the creation of a contract; without `gas` the node estimates it."""

    to: ChecksumAddress | None
    data: bytes
    description: str
    value: int = 0
    gas: int | None = None
    spare_gas: int = 0
    """Beyond the estimate, for what becomes dearer if others are faster."""

    def with_gas(self, gas: int) -> Call:
        """With a gas limit of its own, which also means: send it without estimating first."""
        return replace(self, gas=gas)

    def with_spare_gas(self, gas: int) -> Call:
        """With so much more than is estimated: what is not used costs nothing."""
        return replace(self, spare_gas=gas)
