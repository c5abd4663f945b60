"""Merkle trees: bare ones, and of a data set."""

from vectors.made_up import words
from vectors.specification import spec
from vectors.values import Vector


def tree(leaves: list[bytes]) -> Vector:
    return {
        "leaves": leaves,
        "proofs": [spec.merkle_proof(leaves, i) for i in range(len(leaves))],
        "root": spec.merkle_root(leaves),
    }


def merkle() -> Vector:
    sizes = [1, 2, 3, 4, 5, 7, 8]
    return {"cases": [tree(words(f"leaf of {size}", size)) for size in sizes], "sizes": sizes}


def dataset() -> Vector:
    commitments = words("input commitment", 5)
    far_round = 2**200
    return {
        "commitments": commitments,
        "farLeaf": spec.dataset_leaf(far_round, commitments[0]),
        "farRound": str(far_round),
        **tree(spec.dataset_leaves(commitments)),
    }
