"""The bytes in which a delivery travels from a client to one member."""

import struct
from itertools import accumulate, pairwise
from typing import Final

from opfl_chain.protocol.delivery import Delivery, Expected, InputDelivery
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.ring import RING_WORD_BYTES
from opfl_chain.protocol.ring_shares import HASH_BYTES, SharePackage
from opfl_chain.protocol.widths import bytes32

MAGIC: Final = b"OPFD"
VERSION: Final = 1
MOST_PROOF_NODES: Final = 32
"""Round numbers have 32 bits, so a proof in a data set of one input for each has no more nodes."""

_HEADER: Final = struct.Struct(">4sBQQQ")
"""Magic, version, and how many bytes the gradient, the input and the advice have."""


def encode_delivery(delivery: Delivery) -> bytes:
    """Header; package of the gradient; the input and the package of the advice, or nothing."""
    parts = [
        delivery.gradient.encode(),
        _encode_input(delivery.training_input) if delivery.training_input else b"",
        delivery.advice.encode() if delivery.advice else b"",
    ]
    return b"".join([_HEADER.pack(MAGIC, VERSION, *map(len, parts)), *parts])


def decode_delivery(data: bytes, expected: Expected) -> Delivery:
    """Read what a client sent to the member that ``expected`` describes."""
    if len(data) < _HEADER.size:
        raise ShareError(f"a delivery has {_HEADER.size} bytes at least, this one has {len(data)}")
    magic, version, *sizes = _HEADER.unpack_from(data)
    if (magic, version) != (MAGIC, VERSION):
        raise ShareError(
            f"a delivery starts with {MAGIC!r} and version {VERSION}, not {magic!r} and {version}"
        )
    ends = list(accumulate(sizes, initial=_HEADER.size))
    if len(data) != ends[-1]:
        raise ShareError(f"delivery has {len(data):,} bytes, its header says {ends[-1]:,}")
    gradient, training_input, advice = (data[start:end] for start, end in pairwise(ends))
    return Delivery(
        _decode_package(gradient, expected, expected.package_words(expected.gradient_words)),
        _decode_input(training_input, expected) if training_input else None,
        _decode_package(advice, expected, expected.advice_words) if advice else None,
    )


def largest_delivery(expected: Expected) -> int:
    """Return how many bytes no delivery that decodes exceeds, so that no more need be read."""
    gradient = _largest_package(expected.package_words(expected.gradient_words))
    training_input = 1 + HASH_BYTES * (1 + MOST_PROOF_NODES)
    training_input += _largest_package(expected.package_words(expected.input_words))
    return _HEADER.size + gradient + training_input + _largest_package(expected.advice_words)


def _encode_input(given: InputDelivery) -> bytes:
    """Number of nodes of the proof, commitment, proof, package."""
    if len(given.proof) > MOST_PROOF_NODES:
        raise ShareError(_proof_too_long(len(given.proof)))
    commitment = bytes32("commitment to the input", given.commitment)
    proof = [bytes32(f"proof[{i}]", node) for i, node in enumerate(given.proof)]
    return b"".join([bytes([len(proof)]), commitment, *proof, given.package.encode()])


def _decode_input(data: bytes, expected: Expected) -> InputDelivery:
    nodes = data[0]
    if nodes > MOST_PROOF_NODES:
        raise ShareError(_proof_too_long(nodes))
    package_at = 1 + HASH_BYTES * (1 + nodes)
    if len(data) < package_at:
        raise ShareError(
            f"delivered input ends in its proof: {nodes} nodes and the commitment before them take"
            f" {package_at:,} bytes, it has {len(data):,}"
        )
    commitment, *proof = (data[at : at + HASH_BYTES] for at in range(1, package_at, HASH_BYTES))
    words = expected.package_words(expected.input_words)
    package = _decode_package(data[package_at:], expected, words)
    return InputDelivery(package, commitment, tuple(proof))


def _decode_package(data: bytes, expected: Expected, words: int) -> SharePackage:
    return SharePackage.decode(data, expected.scheme, expected.rank, words)


def _largest_package(words: int) -> int:
    """One component as words; header, hashes, salts and seeds have less than 256 bytes."""
    return 256 + RING_WORD_BYTES * words


def _proof_too_long(nodes: int) -> str:
    return f"proof of the delivered input has {nodes} nodes, there are {MOST_PROOF_NODES} at most"
