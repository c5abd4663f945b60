"""What a transaction offers to pay (EIP-1559)."""

from __future__ import annotations

from dataclasses import dataclass

GWEI = 10**9


@dataclass(frozen=True)
class Fees:
    """Wei per gas."""

    maximum: int
    priority: int


@dataclass(frozen=True)
class FeePolicy:
    base_multiple: int = 2
    """Room for the base fee to grow: it at most doubles in six full blocks."""
    bump_percent: int = 25
    """How much a replacement adds; nodes ask for 10 at least."""
    limit: int = 500 * GWEI
    """Never offer more than this per gas."""

    def first(self, base_fee: int, suggested_priority: int) -> Fees:
        return Fees(self.base_multiple * base_fee + suggested_priority, suggested_priority)

    def bumped(self, previous: Fees, current: Fees) -> Fees:
        """Enough to replace `previous`, and no less than what is asked for now."""
        return Fees(
            max(self._raise(previous.maximum), current.maximum),
            max(self._raise(previous.priority), current.priority),
        )

    def _raise(self, fee: int) -> int:
        return fee + fee * self.bump_percent // 100 + 1
