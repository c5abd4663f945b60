"""What a vector is made of, and how it is written as JSON."""

from typing import Any

from eth_utils.address import to_checksum_address

Vector = dict[str, Any]


class Address(bytes):
    """20 bytes that are an address and not any other byte string of that length."""


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
