"""Shares and packages against the vectors of docs/SPEC.md."""

import numpy as np
import protocol_vectors as vectors
import pytest
from protocol_vectors import columns

from opfl_chain.protocol.commitments import (
    Scheme,
    Subject,
    salted_words,
    share_hash,
    shares_commitment,
    tree_commitment,
    tree_top,
)
from opfl_chain.protocol.errors import CommitmentMismatch, ComponentMismatch, ShareError
from opfl_chain.protocol.ring import words_of_bytes
from opfl_chain.protocol.shares import (
    SharedVector,
    SharePackage,
    expand,
    held_indices,
    verify_components,
    verify_package,
)


def test_shares():
    vector = vectors.load("shares")
    sent = columns(vector, "sent0", "sent1", "sent2")
    salts = columns(vector, "salts0", "salts1", "salts2")
    hashes = columns(vector, "hashes0", "hashes1", "hashes2")
    for i, row in enumerate(hashes):
        for k in range(3):
            assert share_hash(k, salts[i][k], sent[i][k]) == row[k]
        for subject in Subject:
            commitment = vector[f"{subject.name.lower()}Commitments"][i]
            assert shares_commitment(subject, row) == commitment


def test_ring_shares():
    vector = vectors.load("ring_shares")
    for seed, count, expanded in columns(vector, "seeds", "counts", "expanded"):
        assert expand(seed, count).tobytes() == expanded
    words = words_of_bytes("words", vector["words"])
    shared = SharedVector.split(words, vector["seed0"], vector["seed1"])
    assert [component.tobytes() for component in shared.components] == vector["components"]
    assert np.array_equal(shared.reconstruct(), words)
    assert [list(held_indices(rank)) for rank in range(3)] == vector["heldBy"]


def test_packages():
    vector = vectors.load("packages")
    words = words_of_bytes("words", vector["words"])
    shared = SharedVector.split(words, vector["seed0"], vector["seed1"])
    for scheme in Scheme:
        packages = shared.packages(scheme, vector["salts"])
        assert [package.encode() for package in packages] == vector[scheme.value]
        assert all(list(package.leaf_hashes) == vector["hashes"] for package in packages)
        for rank, package in enumerate(packages):
            data = vector[scheme.value][rank]
            assert SharePackage.decode(data, scheme, rank, vector["count"]) == package
            verify_components(package)
            if scheme is Scheme.SHARES:
                verify_package(package, Subject.GRADIENT, vector["commitment"])


def test_malformed_packages_are_refused():
    vector = vectors.load("packages")
    for data, why in columns(vector, "malformed", "malformedWhy"):
        with pytest.raises(ShareError):
            SharePackage.decode(data, Scheme.SHARES, 1, vector["count"])
            pytest.fail(f"accepted: {why}")


def test_packages_that_do_not_open_the_commitment_are_refused():
    vector = vectors.load("packages")
    for data, is_commitment, why in columns(vector, "wrong", "wrongIsCommitment", "wrongWhy"):
        package = SharePackage.decode(data, Scheme.SHARES, 1, vector["count"])
        with pytest.raises(CommitmentMismatch if is_commitment else ComponentMismatch):
            verify_package(package, Subject.GRADIENT, vector["commitment"])
            pytest.fail(f"accepted: {why}")


def test_gradient_tree():
    vector = vectors.load("gradient_tree")
    assert vector["counts"] == [1, 16, 17, 64, 65, 1000]
    for count, data, salt, salted, top, gradient, input_ in columns(
        vector,
        "counts",
        "words",
        "salts",
        "salted",
        "tops",
        "gradientCommitments",
        "inputCommitments",
    ):
        words = words_of_bytes("words", data)
        assert words.size == count
        assert tree_top(words) == top
        assert tree_commitment(Subject.GRADIENT, salt, words) == gradient
        assert tree_commitment(Subject.INPUT, salt, words) == input_
        assert salted_words(words, salt).tobytes() == salted
