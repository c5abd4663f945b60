"""What nodes say and what it means: the one table from error strings to types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from opfl_chain.chain.errors import (
    AlreadyKnown,
    ChainError,
    GasLimitWrong,
    InsufficientFunds,
    MethodMissing,
    NodeRefused,
    NonceTooHigh,
    NonceTooLow,
    RangeRefused,
    Underpriced,
    WrongSigningChain,
)
from opfl_chain.chain.reverts import decode_revert

# First match wins. Wordings of Anvil, Hardhat, geth, Erigon, Nethermind, Besu and the large
# providers; none of them is specified anywhere.
_TABLE: tuple[tuple[str, type[NodeRefused]], ...] = (
    (r"already (known|imported)|known transaction|alreadyknown", AlreadyKnown),
    (r"nonce too low|oldnonce|nonce is too low|nonce has already been used", NonceTooLow),
    (r"nonce too high|noncegap|nonce gap", NonceTooHigh),
    (r"underpriced|replacementnotallowed|replacement fee too low", Underpriced),
    (r"max ?fee ?per ?gas.*(less than|too low)|fee ?too ?low|gas price too low", Underpriced),
    (r"insufficient ?funds|have enough funds|insufficient balance", InsufficientFunds),
    (r"intrinsic gas|requires at least \d+ gas", GasLimitWrong),
    (r"exceeds (block gas limit|allowance)|gas limit", GasLimitWrong),
    (r"chain ?id", WrongSigningChain),
    (
        r"block ?range|blockoutofrange|range (is )?too (large|wide)|more than \d+ results",
        RangeRefused,
    ),
    (r"response size|limit exceeded|query timeout|too many (blocks|logs)", RangeRefused),
    (r"method .*(not found|not supported|does not exist|not available)", MethodMissing),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in _TABLE)
_REVERT_CODE = 3


def from_node_error(method: str, error: Mapping[str, Any]) -> ChainError:
    """The exception for the `error` member of a JSON-RPC answer."""
    message = str(error.get("message", error))
    code = _code(error.get("code"))
    data = _revert_data(error.get("data"))
    if data is not None or code == _REVERT_CODE or "revert" in message.lower():
        return decode_revert(data or b"", message)
    for pattern, kind in _COMPILED:
        if pattern.search(message):
            return kind(method, message, code)
    return NodeRefused(method, message, code)


def _code(code: Any) -> int:
    """JSON-RPC asks for an integer, and not all that answers speaks it."""
    return code if isinstance(code, int) else 0


def _revert_data(data: Any) -> bytes | None:
    """Anvil and geth put the bytes in `data`, Hardhat into `data.data`."""
    if isinstance(data, Mapping):
        data = data.get("data")
    if not isinstance(data, str) or not re.fullmatch(r"0x([0-9a-fA-F]{2})*", data):
        return None
    return bytes.fromhex(data[2:])
