"""Merkle trees: bare ones, of a data set, and of a batch of commitments."""

from vectors.made_up import addresses, words
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


def batch() -> Vector:
    job, round_, size = 7, 3, 5
    clients, commitments = addresses("client", size), words("gradient", size)
    pairs = zip(clients, commitments, strict=True)
    leaves = [spec.batch_leaf(job, round_, client, commitment) for client, commitment in pairs]
    return {
        "clients": clients,
        "commitments": commitments,
        "job": job,
        "round": round_,
        **tree(leaves),
    }
