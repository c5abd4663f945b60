"""The errors of the chain layer, under one root.

Catch `ChainError` to catch all of them. Two tables map a node's responses to these types: error
strings in `rpc.py`, revert data in `abi.py`.
"""

from __future__ import annotations

from pathlib import Path


class ChainError(Exception):
    """The base class of all errors that `opfl_chain.chain` raises."""


# --- the node


class RpcUnavailable(ChainError):
    """The node did not send a JSON-RPC response. It may have executed the request."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"{url} does not answer ({reason}). Is the node running and is the address right?"
        )
        self.url = url


class NodeRefused(ChainError):
    """The node answered a request with an error."""

    advice = ""

    def __init__(self, method: str, message: str, code: int = 0) -> None:
        super().__init__(f"{method} was refused: {message} (code {code}){self.advice}")
        self.method = method
        self.message = message
        self.code = code


class NonceTooLow(NodeRefused):
    advice = ". Another transaction of this account already used this nonce."


class NonceTooHigh(NodeRefused):
    advice = ". An earlier transaction of this account has to arrive first."


class Underpriced(NodeRefused):
    advice = ". Raise the fee: a replacement needs at least 10% more than what it replaces."


class InsufficientFunds(NodeRefused):
    advice = ". The account must hold value + gas * max fee; send it more, or send less."


class AlreadyKnown(NodeRefused):
    advice = ". The node already has this transaction: wait for its receipt."


class GasLimitWrong(NodeRefused):
    advice = ". Leave `gas` out of the call to have it estimated."


class WrongSigningChain(NodeRefused):
    advice = ". The transaction was signed for another chain id."


class RangeRefused(NodeRefused):
    advice = ". Ask for fewer blocks at a time."


class MethodMissing(NodeRefused):
    advice = ". This kind of node does not offer that method."


class ChainMismatch(ChainError):
    """Stored state or configuration belongs to another chain than the node's."""

    def __init__(self, what: str, expected: object, found: object, remedy: str) -> None:
        super().__init__(f"{what}: expected {expected}, found {found}. {remedy}")
        self.expected = expected
        self.found = found


class PragueMissing(ChainError):
    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url} has no BLS12-381 precompiles (EIP-2537), which the beacon needs. "
            "Use a chain that runs the Prague hard fork or a later one."
        )


# --- bindings


class BadArgument(ChainError, ValueError):
    """An argument does not fit the type that the contract declares for it."""


class UnexpectedData(ChainError):
    """The chain holds data that the bindings cannot read."""


# --- sending


class SendError(ChainError):
    """An intent was not executed or confirmed; `key` names it in the sender's store."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"intent {key!r}: {message}")
        self.key = key


class ReceiptTimeout(SendError):
    def __init__(self, key: str, seconds: float, hashes: list[str]) -> None:
        super().__init__(
            key,
            f"no confirmed receipt after {seconds:g} s for any of {', '.join(hashes) or 'nothing'}."
            " It may still be mined: call `wait` with the same key again, never a new key.",
        )
        self.hashes = hashes


class NonceTaken(SendError):
    def __init__(self, key: str, nonce: int, address: str) -> None:
        super().__init__(
            key,
            f"nonce {nonce} of {address} was used by a transaction that this store does not know. "
            "The intent was not executed. Use one sender per key; to send it anyway, use a new "
            "idempotency key.",
        )
        self.nonce = nonce


class KeyReused(SendError):
    def __init__(self, key: str, stored: str, given: str) -> None:
        super().__init__(
            key,
            f"is stored as {stored!r} but was now submitted as {given!r}. One idempotency key "
            "stands for one call: give the new call its own key.",
        )


class UnknownIntent(SendError):
    def __init__(self, key: str) -> None:
        super().__init__(key, "is not in the store. Submit it before waiting for it.")


class FeeTooHigh(SendError):
    def __init__(self, key: str, needed: int, limit: int) -> None:
        super().__init__(
            key,
            f"needs a fee of {needed} wei per gas, but the limit is {limit}. Wait until fees fall, "
            "or raise `FeePolicy.limit`.",
        )


class SenderLocked(ChainError):
    def __init__(self, address: str, path: Path) -> None:
        super().__init__(
            f"another sender for {address} holds {path}. A key has one sender at a time: "
            "close the other one (or stop its process), or use another key."
        )


# --- following


class ReorgTooDeep(ChainError):
    def __init__(self, cursor: str, oldest: int, position: int) -> None:
        super().__init__(
            f"cursor {cursor!r} at block {position}: the chain was reorganised below block "
            f"{oldest}, the oldest that can be undone. Delete the database and follow the chain "
            "from the start, with a larger `window` or more `confirmations`."
        )
        self.oldest = oldest


class HandlerOverreached(ChainError):
    def __init__(self, cursor: str, what: str, tables: tuple[str, ...]) -> None:
        super().__init__(
            f"cursor {cursor!r}: a handler tried to {what}. It may only change rows of the tables "
            f"that a reorganisation rewinds ({', '.join(tables) or 'none'}), inside the "
            "transaction that also moves the cursor. Name all its tables in `tables`."
        )


# --- tools


class CompilerMissing(ChainError):
    """A usable Solidity compiler, or a source for it, is missing."""


class CompilationFailed(ChainError):
    """Compilation failed; the message is usually the compiler's own."""


class DevnetFailed(ChainError):
    """A development chain did not start, or another process answers in its place."""


class DeploymentInvalid(ChainError):
    """A deployment file is malformed, or the chain holds other code than recorded."""


# --- keys


class KeystoreError(ChainError):
    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"keystore {path}: {message}")
        self.path = path


class KeystoreMissing(KeystoreError):
    pass


class KeystoreExists(KeystoreError):
    pass


class KeystoreMalformed(KeystoreError):
    pass


class WrongPassword(KeystoreError):
    pass


class InvalidPoint(ChainError, ValueError):
    """Bytes that are not a usable point of BLS12-381."""


class InvalidScalar(ChainError, ValueError):
    """Bytes that are not a usable BLS12-381 secret key."""
