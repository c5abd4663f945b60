"""The values of a vector, and their JSON form."""

from typing import Any

from eth_utils.address import to_checksum_address

Vector = dict[str, Any]


class Address(bytes):
    """An address, as distinct from other strings of 20 bytes."""


def to_json(value: Any) -> Any:
    """Write bytes as hexadecimal, and addresses with their checksum."""
    if isinstance(value, Address):
        return to_checksum_address(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, dict):
        return {key: to_json(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value
