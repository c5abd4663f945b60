"""Audit randomness: the message that members sign, and the resulting seed."""

from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from vectors.made_up import BEACON, CHAIN_ID, addresses, words
from vectors.specification import spec
from vectors.values import Vector


def encode_point(point: G1Point | G2Point) -> bytes:
    """EIP-2537: base field elements of 64 bytes, c0 before c1."""
    xy = bytes(point.to_xy_bytes_be())
    return b"".join(bytes(16) + xy[i : i + 48] for i in range(0, len(xy), 48))


def sign(secret: int, message: bytes, dst: bytes) -> G1Point:
    return G1Point.hash_to_curve(message, dst) * Scalar(secret)


def beacon() -> Vector:
    """Three members with real keys: proofs of possession, partial and aggregate signatures."""
    members = addresses("member", 3)
    secrets = [int.from_bytes(w, "big") >> 2 for w in words("secret key", 3)]
    points = [G2Point() * Scalar(secret) for secret in secrets]
    keys = [encode_point(point) for point in points]
    possession_messages = [
        spec.proof_of_possession_message(CHAIN_ID, BEACON, member, key)
        for member, key in zip(members, keys, strict=True)
    ]
    possession_proofs = [
        encode_point(sign(secret, message, spec.PROOF_OF_POSSESSION_DST))
        for secret, message in zip(secrets, possession_messages, strict=True)
    ]
    rounds = [(1, 0), (1, 1), (2**64 - 1, 2**32 - 1)]
    openings, roots = words("opening", len(rounds)), words("root of a roll", len(rounds))
    messages = [
        spec.beacon_message(CHAIN_ID, BEACON, *each, opening, root)
        for each, opening, root in zip(rounds, openings, roots, strict=True)
    ]
    partials = [[sign(s, message, spec.SIGNATURE_DST) for message in messages] for s in secrets]
    signatures = [encode_point(a + b + c) for a, b, c in zip(*partials, strict=True)]
    return {
        "aggregatePublicKey": encode_point(points[0] + points[1] + points[2]),
        "beacon": BEACON,
        "chainId": CHAIN_ID,
        "jobs": [str(job) for job, _ in rounds],
        "members": members,
        "messages": messages,
        "openings": openings,
        "partials0": [encode_point(p) for p in partials[0]],
        "partials1": [encode_point(p) for p in partials[1]],
        "partials2": [encode_point(p) for p in partials[2]],
        "possessionDst": spec.PROOF_OF_POSSESSION_DST,
        "possessionMessages": possession_messages,
        "possessionProofs": possession_proofs,
        "publicKeys": keys,
        "roots": roots,
        "rounds": [round_ for _, round_ in rounds],
        "secretKeys": [secret.to_bytes(32, "big") for secret in secrets],
        "seeds": [spec.seed_of_signature(signature) for signature in signatures],
        "signatureDst": spec.SIGNATURE_DST,
        "signatures": signatures,
    }
