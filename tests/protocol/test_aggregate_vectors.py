"""Accepted contributions make the next model, as in the vectors of docs/SPEC.md."""

import numpy as np
import protocol_vectors as vectors
from protocol_vectors import columns

from opfl_chain.learning.optimizers import optimizer_of
from opfl_chain.protocol.aggregate import (
    NOTHING,
    aggregate_hash,
    mean_gradient,
    open_sum,
    sum_components,
    weights_hash,
)
from opfl_chain.protocol.policy import AdamW, Sgd
from opfl_chain.protocol.ring import FixedPoint, unsigned_words, words_of_bytes
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.sums import (
    agree,
    decode_judged,
    decode_parts,
    encode_judged,
    encode_parts,
    part_hash,
)


def test_sums():
    vector = vectors.load("aggregate")
    for case in vector["cases"]:
        shared = [
            [unsigned_words("component", words_of_bytes("component", data)) for data in components]
            for components in case["components"]
        ]
        assert len(shared) == case["contributions"]
        sums = {}
        for rank in range(3):
            own, following = held_indices(rank)
            held = [(components[own], components[following]) for components in shared]
            found = sum_components(held, len(shared))
            assert encode_parts([part_hash(part) for part in found]) == case["parts"][rank]
            for index, component in zip((own, following), found, strict=True):
                assert component.tobytes() == case["sums"][index]
                sums[index] = component
        total = open_sum(sums)
        assert total.tobytes() == case["words"]
        assert aggregate_hash(total) == case["hash"]


def test_agreements():
    for case in vectors.load("aggregate")["agreements"]:
        judged = decode_judged(case["judged"])
        assert encode_judged(judged) == case["judged"]
        stated = {seat: decode_parts(data) for seat, data in columns(case, "seats", "stated")}
        assert [encode_parts(each) for each in stated.values()] == case["stated"]
        found = agree(stated, judged)
        assert found.hashes == dict(columns(case, "agreedComponents", "agreed")), case["why"]
        disputes = {k: list(seats) for k, seats in found.disputes.items()}
        assert disputes == dict(columns(case, "disputed", "disputedSeats")), case["why"]
        assert list(found.unconfirmed) == case["unconfirmed"], case["why"]
        assert list(found.liars) == case["liars"], case["why"]


def test_nothing_to_open():
    vector = vectors.load("aggregate")
    assert vector["hashOfNothing"] == aggregate_hash(NOTHING)


def singles(digits: list[str]) -> np.ndarray:
    """The floats as float32, which they are."""
    exact = np.array([float(each) for each in digits])
    assert np.array_equal(exact.astype(np.float32), exact)
    return exact.astype(np.float32)


def test_means():
    vector = vectors.load("model")
    fixed_point = FixedPoint(vector["fractionBits"], vector["scale"])
    total = words_of_bytes("total", vector["total"])
    for contributions, mean in columns(vector, "contributions", "means"):
        found = mean_gradient(total, contributions, fixed_point)
        assert found.tobytes() == singles(mean).tobytes()


def test_weights_hashes():
    for weights, digest in columns(vectors.load("model"), "hashed", "hashes"):
        assert weights_hash(singles(weights)) == digest


def test_updates():
    vector = vectors.load("model")
    for rules, expected, digest in columns(vector, "optimizers", "nextWeights", "nextHashes"):
        optimizer = optimizer_of(Sgd(**rules) if rules["name"] == "sgd" else AdamW(**rules))
        weights = singles(vector["weights"])
        state = optimizer.start(weights)
        for gradient in vector["gradients"]:
            state, weights = optimizer.update(state, weights, singles(gradient))
        assert weights.tobytes() == singles(expected).tobytes()
        assert weights_hash(weights) == digest
