"""Return values, events and errors of contracts, as a node reports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuzz_target import Target, joined, parts_of

from opfl_chain.chain.abi import UnknownCustomError, decode_revert, encode, selector
from opfl_chain.chain.bindings import Charges, Jobs
from opfl_chain.chain.bindings.errors import AlreadyPenalised
from opfl_chain.chain.bindings.events import BeaconPublished, Captured
from opfl_chain.chain.contracts.contract import Log, decode_event, plain
from opfl_chain.chain.errors import UnexpectedData
from opfl_chain.chain.rpc import Rpc
from opfl_chain.protocol.identifiers import RoundId

ADDRESS = "0x" + "11" * 20
CHARGE = ("(uint8,uint32,uint96)",)
DOMAIN = ("bytes1", "string", "string", "uint256", "address", "bytes32", "uint256[]")
NOT_UTF8 = encode(["bytes"], [b"\xff"])
FAR_AWAY = encode(["uint256", "uint256"], [32, 2**255])


class AnsweringRpc(Rpc):
    """A node that answers every call with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def call(self, *call: Any, **options: Any) -> bytes:
        return self._answer


def decode_charge(data: bytes) -> Any:
    return Charges(AnsweringRpc(data), ADDRESS).charge_of(RoundId(1), ADDRESS)


def decode_domain(data: bytes) -> Any:
    return Jobs(AnsweringRpc(data), ADDRESS).eip712_domain()


def encoder(types: tuple[str, ...]) -> Callable[[Any], bytes]:
    return lambda values: encode(types, plain(values))


def domain(name: bytes) -> bytes:
    """A domain whose name need not be text."""
    types = [kind.replace("string", "bytes") for kind in DOMAIN]
    return encode(types, [b"\x0f", name, b"1", 1, ADDRESS, bytes(32), [1, 2]])


def decode_log(data: bytes) -> bytes:
    *topics, content = parts_of(data) or [b""]
    decode_event(Log(ADDRESS, tuple(topics), content, 1, "0x", "0x", 0))
    return data


def captured(role: int) -> bytes:
    values = zip(Captured.INDEXED, (1, role, ADDRESS), strict=True)
    topics = (encode([kind], [value]) for kind, value in values)
    return joined(Captured.TOPIC, *topics, encode(Captured.PLAIN, [5, 6]))


def published(*content: bytes) -> bytes:
    return joined(BeaconPublished.TOPIC, encode(["uint96"], [1]), *content)


def decode_refusal(data: bytes) -> bytes:
    """Decode and report it, as callers do."""
    error = decode_revert(data)
    str(error).encode()
    if isinstance(error, UnknownCustomError):
        raise error
    return data


def reverted(signature: str, arguments: bytes) -> bytes:
    return selector(signature) + arguments


def penalised(fault: int) -> bytes:
    arguments = encode(AlreadyPenalised.TYPES, [1, ADDRESS, fault])
    return reverted(AlreadyPenalised.SIGNATURE, arguments)


NODE_TARGETS = {
    "view-of-a-struct": Target(
        decode_charge,
        lambda charge: encoder(CHARGE)([charge]),
        (UnexpectedData,),
        (encode(CHARGE, [(1, 3, 4)]),),
        findings=(encode(CHARGE, [(99, 3, 4)]),),
    ),
    "view-of-text": Target(
        decode_domain,
        encoder(DOMAIN),
        (UnexpectedData,),
        (domain(b"opfl"),),
        findings=(domain(b"\xff"),),
    ),
    "event": Target(
        decode_log,
        bytes,
        (UnexpectedData,),
        (captured(role=1), published(encode(["bytes32", "bytes"], [bytes(32), b"signature"]))),
        findings=(
            captured(role=99),
            published(bytes(32) + encode(["uint256", "uint256"], [64, 2**255])),
        ),
    ),
    "revert": Target(
        decode_refusal,
        bytes,
        (UnknownCustomError,),
        (
            reverted("Error(string)", encode(["string"], ["no"])),
            reverted("Panic(uint256)", encode(["uint256"], [0x11])),
            penalised(fault=1),
        ),
        findings=(
            reverted("Error(string)", NOT_UTF8),
            reverted("Error(string)", FAR_AWAY),
            penalised(fault=99),
        ),
    ),
}
