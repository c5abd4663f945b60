"""The one place where connections to a node are made.

`Rpc` speaks JSON-RPC and turns every failure into a `ChainError`. It asks in plain JSON (hex
strings, camelCase) and leaves types to its callers, because web3's own formatting costs more than
the node does when requests are sent in batches. Nor is web3 loaded unless it is asked for, which
takes half a second of every process.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import requests
from eth_typing import ChecksumAddress
from eth_utils.address import to_checksum_address

from opfl_chain.chain.errors import ChainError, PragueMissing, RpcUnavailable
from opfl_chain.chain.node_errors import from_node_error

if TYPE_CHECKING:
    from web3 import Web3

T = TypeVar("T")
Request = tuple[str, Sequence[Any]]
BlockTag = int | str

_BATCH = 200
# Repeating these after a lost answer changes nothing: reads, and a signed transaction, which is
# executed at most once however often it arrives. Methods like `anvil_mine` are not of that kind.
_REPEATABLE = ("eth_", "net_", "web3_")
_G1_ADD = "0x000000000000000000000000000000000000000b"
_G1_BYTES = 128


class Rpc:
    """A connection to one node. Safe to share between threads."""

    def __init__(
        self, url: str, *, timeout: float = 20.0, retries: int = 3, backoff: float = 0.1
    ) -> None:
        self.url = url
        self._timeout = timeout
        self._retries = retries
        self._backoff = backoff
        self._session = requests.Session()
        # A proxy from the environment has no business between us and our own machine.
        self._session.trust_env = not is_loopback(url)
        self._ids = itertools.count()

    def __enter__(self) -> Rpc:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._session.close()

    def web3(self) -> Web3:
        """A web3 object on the same connection, for what the bindings do not cover."""
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
            lambda: self._post(self._question(method, params)),
            repeatable=method.startswith(_REPEATABLE),
        )
        result = _unwrap(method, answer)
        if isinstance(result, ChainError):
            raise result
        return result

    def batch(self, calls: Sequence[Request]) -> list[Any]:
        """Answers in the order of the requests; a refused one is an exception as a value."""
        results: list[Any] = []
        for start in range(0, len(calls), _BATCH):
            chunk = calls[start : start + _BATCH]
            answers = self._transport(
                lambda chunk=chunk: self._post_all(chunk),  # type: ignore[misc]
                repeatable=all(method.startswith(_REPEATABLE) for method, _ in chunk),
            )
            if not isinstance(answers, list):
                failure = _unwrap("JSON batch", answers)
                raise failure if isinstance(failure, ChainError) else self._nonsense(answers)
            if len(answers) != len(chunk):
                raise self._nonsense(f"{len(answers)} answers to {len(chunk)} requests")
            results += [
                _unwrap(method, answer) for (method, _), answer in zip(chunk, answers, strict=True)
            ]
        return results

    def batch_or_raise(self, calls: Sequence[Request]) -> list[Any]:
        """Like `batch`, for requests of which none may fail."""
        results = self.batch(calls)
        for result in results:
            if isinstance(result, ChainError):
                raise result
        return results

    # --- questions that more than one module asks

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
        """What the contract returns; a revert raises its typed error."""
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
        except ChainError as error:
            if isinstance(error, RpcUnavailable):
                raise
            raise PragueMissing(shown_url(self.url)) from error
        if len(total) != _G1_BYTES:
            raise PragueMissing(shown_url(self.url))

    def _question(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
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
        """Answers may come in any order; what is no list is the refusal of all."""
        questions = [self._question(method, params) for method, params in calls]
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
                    raise RpcUnavailable(shown_url(self.url), _reason(error)) from error
                time.sleep(self._backoff * 2**attempt)
        raise AssertionError("unreachable: the loop returns or raises")

    def _nonsense(self, answer: object) -> RpcUnavailable:
        return RpcUnavailable(shown_url(self.url), f"not a JSON-RPC answer: {answer!r:.200}")


def _unwrap(method: str, answer: Any) -> Any:
    if not isinstance(answer, Mapping):
        return from_node_error(method, {"message": f"not a JSON-RPC answer: {answer!r:.200}"})
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
    """For messages and logs: without what may be a key, in user, path or query."""
    parts = urlsplit(url)
    host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return url if url.rstrip("/") == host else f"{host}/..."


def is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def block_tag(block: BlockTag) -> str:
    return hex(block) if isinstance(block, int) else block


def tohex(data: bytes) -> str:
    return "0x" + data.hex()


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def checksum(address: str | bytes) -> ChecksumAddress:
    return to_checksum_address(address)
