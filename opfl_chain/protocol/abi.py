"""ABI encoding of values whose width was checked.

The ABI encoder silently pads a short ``bytes32``, and two values with the same encoding would be
one commitment. So only fields are encoded, and only checked values become fields.
"""

from typing import NamedTuple

from eth_abi.abi import encode
from eth_utils.address import is_checksum_address, is_checksum_formatted_address, is_hex_address

from opfl_chain.protocol.errors import WidthError
from opfl_chain.protocol.identifiers import Address, JobId, RoundNumber
from opfl_chain.protocol.widths import bytes32, unsigned


class Field(NamedTuple):
    """An ABI type and a value that fits it."""

    abi_type: str
    value: int | bytes


def abi_encode(*fields: Field) -> bytes:
    """Encode as Solidity's ``abi.encode`` does."""
    return encode([field.abi_type for field in fields], [field.value for field in fields])


def uint(name: str, value: int, bits: int) -> Field:
    return Field(f"uint{bits}", unsigned(name, value, bits))


def job_id(value: JobId) -> Field:
    return uint("job", value, 64)


def round_number(value: RoundNumber) -> Field:
    return uint("round", value, 32)


def address(name: str, value: Address) -> Field:
    return Field("address", address_bytes(name, value))


def word(name: str, value: bytes) -> Field:
    return Field("bytes32", bytes32(name, value))


def byte_string(value: bytes) -> Field:
    return Field("bytes", bytes(value))


def address_bytes(name: str, value: Address) -> bytes:
    """Return the 20 bytes of an address."""
    if not is_hex_address(value) or not value.startswith("0x"):
        raise WidthError(f"{name} is {value!r}, it must be 0x and 40 hex digits")
    if is_checksum_formatted_address(value) and not is_checksum_address(value):
        raise WidthError(f"{name} is {value}, whose checksum is wrong: a digit may be mistyped")
    return bytes.fromhex(value[2:])
