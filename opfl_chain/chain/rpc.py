"""JSON-RPC requests to a node, and its error strings as typed exceptions."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import requests
from eth_typing import ChecksumAddress
from eth_utils.address import to_checksum_address

from opfl_chain.chain import errors
from opfl_chain.chain.abi import decode_revert
from opfl_chain.system.closing import Closing

if TYPE_CHECKING:
    from web3 import Web3


# First match wins. The messages of Anvil, Hardhat, geth, Erigon, Nethermind, Besu and the large
# providers; no standard specifies them.
_TABLE: tuple[tuple[str, type[errors.NodeRefused]], ...] = (
    (r"already (known|imported)|known transaction|alreadyknown", errors.AlreadyKnown),
    (r"nonce too low|oldnonce|nonce is too low|nonce has already been used", errors.NonceTooLow),
    (r"nonce too high|noncegap|nonce gap", errors.NonceTooHigh),
    (r"underpriced|replacementnotallowed|replacement fee too low", errors.Underpriced),
    (
        r"max ?fee ?per ?gas.*(less than|too low)|fee ?too ?low|gas price too low",
        errors.Underpriced,
    ),
    (r"insufficient ?funds|have enough funds|insufficient balance", errors.InsufficientFunds),
    (r"intrinsic gas|requires at least \d+ gas", errors.GasLimitWrong),
    (r"exceeds (block gas limit|allowance)|gas limit", errors.GasLimitWrong),
    (r"chain ?id", errors.WrongSigningChain),
    (
        r"block ?range|blockoutofrange|range (is )?too (large|wide)|more than \d+ results",
        errors.RangeRefused,
    ),
    (r"response size|limit exceeded|query timeout|too many (blocks|logs)", errors.RangeRefused),
    (r"method .*(not found|not supported|does not exist|not available)", errors.MethodMissing),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in _TABLE)
_REVERT_CODE = 3
T = TypeVar("T")
Request = tuple[str, Sequence[Any]]
BlockTag = int | str
_BATCH = 200
# Idempotent methods, safe to repeat after a lost response: reads, and signed transactions, which
# are executed at most once. Methods like `anvil_mine` are not.
_REPEATABLE = ("eth_", "net_", "web3_")
_G1_ADD = "0x000000000000000000000000000000000000000b"
_G1_BYTES = 128


def from_node_error(method: str, error: Mapping[str, Any]) -> errors.ChainError:
    """Return the exception for the `error` member of a JSON-RPC response."""
    message = str(error.get("message", error))
    code = _code(error.get("code"))
    data = _revert_data(error.get("data"))
    if data is not None or code == _REVERT_CODE or "revert" in message.lower():
        return decode_revert(data or b"", message)
    for pattern, kind in _COMPILED:
        if pattern.search(message):
            return kind(method, message, code)
    return errors.NodeRefused(method, message, code)


def _code(code: Any) -> int:
    """Return the code, or 0 if it is not the integer that JSON-RPC requires."""
    return code if isinstance(code, int) else 0


def _revert_data(data: Any) -> bytes | None:
    """Return the revert data: in `data` for Anvil and geth, in `data.data` for Hardhat."""
    if isinstance(data, Mapping):
        data = data.get("data")
    if not isinstance(data, str) or not re.fullmatch(r"0x([0-9a-fA-F]{2})*", data):
        return None
    return bytes.fromhex(data[2:])


class Rpc(Closing):
    """A connection to one node. Safe to share between threads."""

    def __init__(
        self, url: str, *, timeout: float = 20.0, retries: int = 3, backoff: float = 0.1
    ) -> None:
        self.url = url
        self._timeout = timeout
        self._retries = retries
        self._backoff = backoff
        self._session = requests.Session()
        # Connections to this machine must not go through a proxy from the environment.
        self._session.trust_env = not is_loopback_url(url)
        self._ids = itertools.count()

    def close(self) -> None:
        self._session.close()

    def web3(self) -> Web3:
        """Return a web3 object on the same connection, for calls that the bindings do not cover."""
        from web3 import HTTPProvider, Web3

        return Web3(
            HTTPProvider(
                self.url,
                request_kwargs={"timeout": self._timeout},
                session=self._session,
                exception_retry_configuration=None,
            )
        )

    def request(self, method: str, *params: Any) -> Any:
        answer = self._transport(
            lambda: self._post(self._payload(method, params)),
            repeatable=method.startswith(_REPEATABLE),
        )
        result = _unwrap(method, answer)
        if isinstance(result, errors.ChainError):
            raise result
        return result

    def batch(self, calls: Sequence[Request]) -> list[Any]:
        """Return results in the order of the requests; refusals are returned as exceptions."""
        results: list[Any] = []
        for start in range(0, len(calls), _BATCH):
            chunk = calls[start : start + _BATCH]
            answers = self._transport(
                lambda chunk=chunk: self._post_all(chunk),  # type: ignore[misc]
                repeatable=all(method.startswith(_REPEATABLE) for method, _ in chunk),
            )
            if not isinstance(answers, list):
                failure = _unwrap("JSON batch", answers)
                raise (
                    failure if isinstance(failure, errors.ChainError) else self._malformed(answers)
                )
            if len(answers) != len(chunk):
                raise self._malformed(f"{len(answers)} answers to {len(chunk)} requests")
            results += [
                _unwrap(method, answer) for (method, _), answer in zip(chunk, answers, strict=True)
            ]
        return results

    def batch_or_raise(self, calls: Sequence[Request]) -> list[Any]:
        """Like `batch`, but raise the first refusal."""
        results = self.batch(calls)
        for result in results:
            if isinstance(result, errors.ChainError):
                raise result
        return results

    # --- common requests

    def chain_id(self) -> int:
        return int(self.request("eth_chainId"), 16)

    def block_number(self) -> int:
        return int(self.request("eth_blockNumber"), 16)

    def genesis_hash(self) -> str:
        return str(self.request("eth_getBlockByNumber", "0x0", False)["hash"])

    def balance(self, address: str, block: BlockTag = "latest") -> int:
        return int(self.request("eth_getBalance", address, block_tag(block)), 16)

    def nonce(self, address: str, block: BlockTag = "latest") -> int:
        return int(self.request("eth_getTransactionCount", address, block_tag(block)), 16)

    def code(self, address: str, block: BlockTag = "latest") -> bytes:
        return unhex(self.request("eth_getCode", address, block_tag(block)))

    def call(
        self,
        to: str,
        data: bytes,
        *,
        block: BlockTag = "latest",
        sender: str | None = None,
        value: int = 0,
    ) -> bytes:
        """Return the contract's output; a revert raises its typed error."""
        transaction: dict[str, Any] = {"to": to, "data": tohex(data)}
        if sender is not None:
            transaction["from"] = sender
        if value:
            transaction["value"] = hex(value)
        return unhex(self.request("eth_call", transaction, block_tag(block)))

    def require_prague(self) -> None:
        """Raise unless the EIP-2537 precompiles exist: infinity + infinity must be infinity."""
        try:
            total = self.call(_G1_ADD, bytes(2 * _G1_BYTES))
        except errors.ChainError as error:
            if isinstance(error, errors.RpcUnavailable):
                raise
            raise errors.PragueMissing(shown_url(self.url)) from error
        if len(total) != _G1_BYTES:
            raise errors.PragueMissing(shown_url(self.url))

    def _payload(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}

    def _post(self, content: Any) -> Any:
        response = self._session.post(
            self.url,
            json.dumps(content),
            headers={"Content-Type": "application/json"},
            timeout=self._timeout,
        )
        response.raise_for_status()
        return json.loads(response.content)

    def _post_all(self, calls: Sequence[Request]) -> Any:
        """Return responses in request order, or the single error that refuses the whole batch."""
        questions = [self._payload(method, params) for method, params in calls]
        answers = self._post(questions)
        if not isinstance(answers, list):
            return answers
        objects = [each for each in answers if isinstance(each, Mapping)]
        known = {each["id"]: each for each in objects if isinstance(each.get("id"), int)}
        return [known[each["id"]] for each in questions if each["id"] in known]

    def _transport(self, send: Callable[[], T], *, repeatable: bool) -> T:
        attempts = self._retries if repeatable else 1
        for attempt in range(attempts):
            try:
                return send()
            except (requests.RequestException, json.JSONDecodeError, UnicodeDecodeError) as error:
                if attempt + 1 == attempts:
                    raise errors.RpcUnavailable(shown_url(self.url), _reason(error)) from error
                time.sleep(self._backoff * 2**attempt)
        raise AssertionError("unreachable: the loop returns or raises")

    def _malformed(self, answer: object) -> errors.RpcUnavailable:
        return errors.RpcUnavailable(
            shown_url(self.url), f"not a JSON-RPC response: {answer!r:.200}"
        )


def _unwrap(method: str, answer: Any) -> Any:
    if not isinstance(answer, Mapping):
        return from_node_error(method, {"message": f"not a JSON-RPC response: {answer!r:.200}"})
    if error := answer.get("error"):
        return from_node_error(method, error if isinstance(error, Mapping) else {"message": error})
    return answer.get("result")


def _reason(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return "timed out"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    return f"{type(error).__name__}: {error}"


def shown_url(url: str) -> str:
    """Return the URL for messages, without user, path or query, which may contain a key."""
    parts = urlsplit(url)
    host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return url if url.rstrip("/") == host else f"{host}/..."


def is_loopback_url(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def block_tag(block: BlockTag) -> str:
    return hex(block) if isinstance(block, int) else block


def tohex(data: bytes) -> str:
    return "0x" + data.hex()


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def checksum(address: str | bytes) -> ChecksumAddress:
    return to_checksum_address(address)
