"""The primitives against published vectors of others, so that ours do not rest on a typo."""

import hashlib

import protocol_vectors as vectors
from protocol_vectors import columns
from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar
from py_ecc.bls.hash_to_curve import hash_to_G1
from py_ecc.optimized_bls12_381 import normalize

from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.shares import expand, key_stream


def eip2537(point: G1Point | G2Point) -> bytes:
    xy = bytes(point.to_xy_bytes_be())
    return b"".join(bytes(16) + xy[i : i + 48] for i in range(0, len(xy), 48))


def is_signature(key: G2Point, message: bytes, dst: bytes, signature: G1Point) -> bool:
    digest = G1Point.hash_to_curve(message, dst)
    return GT.pairing_check([signature, digest], [-G2Point(), key])


def test_keccak256():
    vector = vectors.load("published")["keccak256"]
    for message, digest in columns(vector, "messages", "digests"):
        assert keccak256(message) == digest
    assert [len(message) for message in vector["messages"]] == [0, 1, 2, 31, 33, 135, 136, 137, 3]


def test_aes256_counter_mode():
    vector = vectors.load("published")["aes256Ctr"]
    for key, counter, plaintext, ciphertext in columns(
        vector, "keys", "counters", "plaintexts", "ciphertexts"
    ):
        stream = key_stream(key, len(plaintext), int.from_bytes(counter, "big"))
        assert bytes(a ^ b for a, b in zip(plaintext, stream, strict=True)) == ciphertext
    from_zero = vector["ciphertexts"][1]  # counter and plaintext are zero
    assert expand(vector["keys"][1], len(from_zero) // 8).tobytes() == from_zero


def test_rfc9380_hash_to_g1():
    vector = vectors.load("published")["rfc9380"]
    dst = vector["dst"]
    for message, x, y, point in columns(vector, "messages", "xs", "ys", "points"):
        assert point == bytes(16) + x + bytes(16) + y
        assert eip2537(G1Point.hash_to_curve(message, dst)) == point
        px, py = normalize(hash_to_G1(message, dst, hashlib.sha256))
        assert (px.n.to_bytes(48, "big"), py.n.to_bytes(48, "big")) == (x, y)


def test_drand_quicknet():
    vector = vectors.load("published")["drandQuicknet"]
    key = G2Point.from_compressed_bytes(vector["publicKeyCompressed"])
    assert eip2537(key) == vector["publicKey"]
    assert vector["rounds"] == [1000, 657413]
    for round_, message, compressed, encoded, randomness in columns(
        vector, "rounds", "messages", "signaturesCompressed", "signatures", "randomness"
    ):
        assert message == hashlib.sha256(round_.to_bytes(8, "big")).digest()
        assert randomness == hashlib.sha256(compressed).digest()
        signature = G1Point.from_compressed_bytes(compressed)
        assert eip2537(signature) == encoded
        assert is_signature(key, message, vector["dst"], signature)


def point_of(encoded: bytes) -> G1Point:
    return G1Point.from_xy_bytes_be(encoded[16:64] + encoded[80:128])


def test_beacon_vectors_are_valid_signatures():
    vector = vectors.load("beacon")
    keys = [G2Point() * Scalar(int.from_bytes(key, "big")) for key in vector["secretKeys"]]
    group = keys[0] + keys[1] + keys[2]
    assert [eip2537(key) for key in keys] == vector["publicKeys"]
    assert eip2537(group) == vector["aggregatePublicKey"]
    for key, message, proof in zip(
        keys, vector["possessionMessages"], vector["possessionProofs"], strict=True
    ):
        assert is_signature(key, message, vector["possessionDst"], point_of(proof))
    for i, message in enumerate(vector["messages"]):
        assert is_signature(
            group, message, vector["signatureDst"], point_of(vector["signatures"][i])
        )
        for member, key in enumerate(keys):
            partial = point_of(vector[f"partials{member}"][i])
            assert is_signature(key, message, vector["signatureDst"], partial)
