"""Secret shares of ring words, and the package in which a member receives its own."""

from vectors.made_up import made_up_words, words
from vectors.specification import is_refused, spec
from vectors.values import Vector


def ring_shares() -> Vector:
    seeds = [bytes(32), b"\xff" * 32, *words("expanded seed", 2)]
    counts = [1, 2, 3, 33]
    xs = [*made_up_words("shared", 5), 0, 1, -1, 2**63 - 1, -(2**63)]
    seed0, seed1 = words("seed of component", 2)
    components = spec.split(xs, seed0, seed1)
    assert spec.reconstruct(components) == xs
    return {
        "components": [spec.ring_bytes(component) for component in components],
        "counts": counts,
        "expanded": [
            spec.ring_bytes(spec.expand(s, n)) for s, n in zip(seeds, counts, strict=True)
        ],
        "heldBy": [spec.held_by(rank) for rank in range(3)],
        "seed0": seed0,
        "seed1": seed1,
        "seeds": seeds,
        "words": spec.ring_bytes(xs),
    }


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def packages() -> Vector:
    """Packages of both schemes, and malformed ones for member 1 of the scheme `shares`."""
    count, salts = 3, words("package salt", 3)
    seed0, seed1 = words("package seed", 2)
    components = spec.split(made_up_words("packaged", count), seed0, seed1)
    sent = [seed0, seed1, spec.ring_bytes(components[2])]
    assert [spec.component_words(k, sent[k], count) for k in range(3)] == components
    parts = list(zip(salts, sent, strict=True))
    hashes = [spec.share_hash(k, *part) for k, part in enumerate(parts)]
    commitment = spec.shares_commitment(spec.TAG_GRADIENT, *hashes)
    encoded = {
        scheme: [
            spec.encode_package(scheme, rank, count, hashes, [parts[k] for k in spec.held_by(rank)])
            for rank in range(3)
        ]
        for scheme in spec.SCHEMES
    }
    for scheme, by_rank in encoded.items():
        for rank, package in enumerate(by_rank):
            decoded = spec.decode_package(package, scheme, rank, count)
            assert spec.package_opens(rank, *decoded, spec.TAG_GRADIENT, commitment)
    good = encoded["shares"][1]
    malformed = {
        "empty": b"",
        "magic": b"opfs" + good[4:],
        "version": good[:4] + b"\x02" + good[5:],
        "other scheme": encoded["mpc"][1],
        "unknown scheme": good[:5] + b"\x03" + good[6:],
        "other member": encoded["shares"][2],
        "no such member": good[:6] + b"\x03" + good[7:],
        "count": good[:7] + spec.uint(4, 64) + good[15:],
        "count beyond all memory": good[:7] + spec.uint(2**64 - 1, 64) + good[15:],
        "ends in the header": good[:14],
        "ends in a leaf hash": good[:110],
        "ends before the first component": good[:111],
        "words in place of a seed": good[:143] + sent[2] + good[175:],
        "ends in the salt": good[:130],
        "ends before the second component": good[:175],
        "seed in place of words": good[:207] + seed0,
        "one byte short": good[:-1],
        "one byte long": good + b"\x00",
        "twice": good + good,
    }
    for why, package in malformed.items():
        assert is_refused(spec.decode_package, package, "shares", 1, count), why
    wrong = {
        "leaf hash that is not held": flipped(good, 15),
        "leaf hash that is held": flipped(good, 47),
        "salt of a seed": flipped(good, 111),
        "seed": flipped(good, 143),
        "salt of words": flipped(good, 175),
        "words": flipped(good, len(good) - 1),
    }
    for why, package in wrong.items():
        decoded = spec.decode_package(package, "shares", 1, count)
        assert not spec.package_opens(1, *decoded, spec.TAG_GRADIENT, commitment), why
    return {
        "commitment": commitment,
        "count": count,
        "hashes": hashes,
        "malformed": list(malformed.values()),
        "malformedWhy": list(malformed),
        "mpc": encoded["mpc"],
        "salts": salts,
        "seed0": seed0,
        "seed1": seed1,
        "shares": encoded["shares"],
        "words": spec.ring_bytes(spec.reconstruct(components)),
        "wrong": list(wrong.values()),
        "wrongIsCommitment": [why.startswith("leaf hash") for why in wrong],
        "wrongWhy": list(wrong),
    }
