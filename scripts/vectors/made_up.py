"""Made-up values: hashes of labels, so that they are deterministic and look like the real ones."""

from vectors.specification import spec
from vectors.values import Address


def word(label: str) -> bytes:
    return bytes(spec.keccak256(label.encode()))


def words(label: str, count: int) -> list[bytes]:
    return [word(f"{label} {i}") for i in range(count)]


def address(label: str) -> Address:
    return Address(word(label)[12:])


def addresses(label: str, count: int) -> list[Address]:
    return [address(f"{label} {i}") for i in range(count)]


def made_up_words(label: str, count: int) -> list[int]:
    return [int.from_bytes(word(f"{label} {i}")[:8], "little", signed=True) for i in range(count)]


def single(label: str) -> float:
    """A made-up float32 in (-2, 2)."""
    return (int.from_bytes(word(label)[:3], "big") - 2**23) / 2**22


CHAIN_ID = 31337
JOBS = address("jobs contract")
BEACON = address("beacon contract")
ROUNDS = address("rounds contract")
