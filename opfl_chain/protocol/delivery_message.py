"""The bytes in which a delivery travels from a client to one member."""

import struct
from typing import Final

from opfl_chain.protocol.delivery import Delivery, Expected, InputDelivery
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.ring_shares import HASH_BYTES, SharePackage

MAGIC: Final = b"OPFD"
VERSION: Final = 1
MOST_PROOF_NODES: Final = 64
"""A data set of more than 2^64 inputs has no round to use them in."""

_HEADER: Final = struct.Struct(">4sBBBQQQ")
"""Magic, version, whether an input is there, nodes of its proof, bytes of the three packages."""


def encode_delivery(delivery: Delivery) -> bytes:
    """Header; gradient package; commitment, proof and package of the input; advice package."""
    given = delivery.training_input
    proof = given.proof if given else ()
    packages = [
        delivery.gradient.encode(),
        given.package.encode() if given else b"",
        delivery.advice.encode() if delivery.advice else b"",
    ]
    sizes = [len(package) for package in packages]
    header = _HEADER.pack(MAGIC, VERSION, given is not None, len(proof), *sizes)
    gradient, training_input, advice = packages
    place = given.commitment + b"".join(proof) if given else b""
    return b"".join([header, gradient, place, training_input, advice])


def decode_delivery(data: bytes, expected: Expected) -> Delivery:
    """Read what a client sent to the member that ``expected`` describes."""
    if len(data) < _HEADER.size:
        raise ShareError(f"a delivery has {_HEADER.size} bytes at least, this one has {len(data)}")
    magic, version, has_input, nodes, *sizes = _HEADER.unpack_from(data)
    if (magic, version) != (MAGIC, VERSION):
        raise ShareError(
            f"a delivery starts with {MAGIC!r} and version {VERSION}, not {magic!r} and {version}"
        )
    if has_input > 1 or nodes > MOST_PROOF_NODES or (nodes and not has_input):
        raise ShareError(f"delivery says {has_input} inputs with a proof of {nodes} nodes")
    if bool(sizes[1]) != bool(has_input):
        raise ShareError(f"delivery says {has_input} inputs, of {sizes[1]:,} bytes")
    place = HASH_BYTES * (1 + nodes) if has_input else 0
    total = _HEADER.size + place + sum(sizes)
    if len(data) != total:
        raise ShareError(f"delivery has {len(data):,} bytes, its header says {total:,}")
    at = _HEADER.size

    def take(size: int) -> bytes:
        nonlocal at
        at += size
        return data[at - size : at]

    def package(size: int, words: int) -> SharePackage:
        return SharePackage.decode(
            take(size), expected.scheme, expected.rank, expected.package_words(words)
        )

    gradient = package(sizes[0], expected.gradient_words)
    training_input = None
    if has_input:
        commitment = take(HASH_BYTES)
        proof = tuple(take(HASH_BYTES) for _ in range(nodes))
        training_input = InputDelivery(package(sizes[1], expected.input_words), commitment, proof)
    advice = None
    if sizes[2]:
        advice = SharePackage.decode(
            take(sizes[2]), expected.scheme, expected.rank, expected.advice_words
        )
    return Delivery(gradient, training_input, advice)


def largest_delivery(expected: Expected) -> int:
    """Return how many bytes an honest delivery has at most, so that no more need be read."""
    words = [
        expected.package_words(expected.gradient_words),
        expected.package_words(expected.input_words),
        expected.advice_words,
    ]
    packages = sum(_package_bytes(count) for count in words)
    return _HEADER.size + HASH_BYTES * (1 + MOST_PROOF_NODES) + packages


def _package_bytes(words: int) -> int:
    """Both components as words, which is more than any package of ours has."""
    return 256 + 2 * 8 * words
