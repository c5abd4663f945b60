"""Commitments to gradients and inputs, of the schemes `shares` and `mpc`."""

from vectors.made_up import made_up_words, words
from vectors.specification import spec
from vectors.values import Vector


def shares() -> Vector:
    lengths = [1, 2, 4, 17, 100]
    sent = [
        *(words(f"share seed {k}", len(lengths)) for k in range(2)),
        [spec.ring_bytes(made_up_words(f"share {n}", n)) for n in lengths],
    ]
    salts = [words(f"share salt {k}", len(lengths)) for k in range(3)]
    hashes = [
        [spec.share_hash(k, s, x) for s, x in zip(salts[k], sent[k], strict=True)] for k in range(3)
    ]
    rows = list(zip(*hashes, strict=True))
    vector: Vector = {
        "gradientCommitments": [spec.shares_commitment(spec.TAG_GRADIENT, *h) for h in rows],
        "inputCommitments": [spec.shares_commitment(spec.TAG_INPUT, *h) for h in rows],
    }
    for k in range(3):
        vector |= {f"hashes{k}": hashes[k], f"salts{k}": salts[k], f"sent{k}": sent[k]}
    return vector


def gradient_tree() -> Vector:
    counts = [1, 16, 17, 64, 65, 1000]
    cases = [made_up_words(f"tree of {count}", count) for count in counts]
    salts = words("tree salt", len(counts))
    rows = list(zip(salts, cases, strict=True))
    return {
        "counts": counts,
        "gradientCommitments": [spec.tree_commitment(spec.TAG_GRADIENT, *row) for row in rows],
        "inputCommitments": [spec.tree_commitment(spec.TAG_INPUT, *row) for row in rows],
        "salted": [spec.ring_bytes(spec.salted_words(xs, salt)) for salt, xs in rows],
        "salts": salts,
        "tops": [spec.tree_top(xs) for xs in cases],
        "words": [spec.ring_bytes(xs) for xs in cases],
    }
