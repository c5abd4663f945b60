"""Checks that a value has exactly the width of its type."""

from opfl_chain.protocol.errors import WidthError


def fixed_bytes(name: str, value: bytes, size: int) -> bytes:
    """Return ``value`` if it has exactly ``size`` bytes."""
    if len(value) != size:
        raise WidthError(f"{name} has {len(value)} bytes, it must have {size}")
    return bytes(value)


def bytes32(name: str, value: bytes) -> bytes:
    """Return ``value`` if it has exactly 32 bytes."""
    return fixed_bytes(name, value, 32)


def unsigned(name: str, value: int, bits: int) -> int:
    """Return ``value`` if it is an unsigned integer of ``bits`` bits."""
    if isinstance(value, bool) or not 0 <= value < 1 << bits:
        raise WidthError(f"{name} is {value}, it must be an integer in [0, 2^{bits})")
    return int(value)


def unsigned_bytes(name: str, value: int, bits: int) -> bytes:
    """Return ``value`` as ``bits`` / 8 big-endian bytes."""
    return unsigned(name, value, bits).to_bytes(bits // 8, "big")
