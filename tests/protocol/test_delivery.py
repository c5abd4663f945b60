"""The checks of a delivery that a member does alone."""

from dataclasses import replace

import numpy as np
import pytest

from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.delivery import (
    Claim,
    Delivery,
    Expected,
    InputDelivery,
    check_delivery,
)
from opfl_chain.protocol.errors import (
    CommitmentMismatch,
    ComponentMismatch,
    DeliveryMissing,
    InputNotCommitted,
    ShareError,
    WidthError,
)
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.shares import commit, share_advice

GRADIENT, INPUT, ADVICE = np.arange(20), np.arange(7), np.arange(5)
BOTH = pytest.mark.parametrize("scheme", list(Scheme), ids=lambda scheme: scheme.value)
RANKS = pytest.mark.parametrize("rank", range(3))


def delivered(scheme, rank=0, audited=True):
    gradient = commit(scheme, Subject.GRADIENT, GRADIENT, bytes(32))
    inputs = [commit(scheme, Subject.INPUT, INPUT + t, bytes([t] * 32)) for t in range(4)]
    tree = dataset_tree([each.commitment for each in inputs])
    advice = share_advice(scheme, ADVICE, bytes([2] * 32))
    claim = Claim(3, 2, gradient.commitment, tree.root, audited)
    training_input = InputDelivery(
        inputs[2].packages[rank], inputs[2].commitment, tuple(tree.proof(2))
    )
    delivery = Delivery(gradient.packages[rank], training_input, advice[rank])
    return Expected(scheme, rank, 20, 7, 5), claim, delivery, (inputs, tree)


@BOTH
@RANKS
def test_valid_delivery_is_returned(scheme, rank):
    expected, claim, delivery, _ = delivered(scheme, rank)
    checked = check_delivery(expected, claim, delivery)
    salt = 4 if scheme is Scheme.MPC else 0
    sizes = [part[0].size for part in (checked.gradient, checked.training_input, checked.advice)]
    assert sizes == [20 + salt, 7 + salt, 5]


@BOTH
def test_members_of_one_delivery_have_one_digest(scheme):
    digests = {check_delivery(*delivered(scheme, rank)[:3]).leaves for rank in range(3)}
    assert len(digests) == 1
    unaudited = check_delivery(*delivered(scheme, audited=False)[:3])
    assert unaudited.training_input is unaudited.advice is None
    assert unaudited.leaves not in digests


@BOTH
def test_together_components_are_what_was_committed_to(scheme):
    first, second = (check_delivery(*delivered(scheme, rank)[:3]) for rank in (0, 1))
    for name, words in (("gradient", GRADIENT), ("training_input", INPUT + 2), ("advice", ADVICE)):
        x0, x1 = getattr(first, name)
        total = (x0 + x1 + getattr(second, name)[1]).view(np.int64)
        assert np.array_equal(total[: words.size], words)


def refused(expected, claim, delivery, error, match):
    with pytest.raises(error, match=match):
        check_delivery(expected, claim, delivery)


@BOTH
def test_missing_part_is_a_fault(scheme):
    expected, claim, delivery, _ = delivered(scheme)
    refused(expected, claim, None, DeliveryMissing, "client 3 delivered nothing")
    without = replace(delivery, training_input=None)
    refused(expected, claim, without, DeliveryMissing, "delivered no input")
    without = replace(delivery, advice=None)
    refused(expected, claim, without, DeliveryMissing, "delivered no advice")
    check_delivery(replace(expected, advice_words=0), claim, without)


@BOTH
def test_input_of_another_place(scheme):
    expected, claim, delivery, (inputs, tree) = delivered(scheme)
    given = delivery.training_input
    others = [
        InputDelivery(inputs[1].packages[0], inputs[1].commitment, tuple(tree.proof(1))),
        replace(given, proof=tuple(tree.proof(1))),
        replace(given, proof=()),
        replace(given, commitment=bytes(32)),
    ]
    for other in others:
        wrong = replace(delivery, training_input=other)
        refused(expected, claim, wrong, InputNotCommitted, "is not the input of round 2")
    moved = replace(claim, round_number=1)
    refused(expected, moved, delivery, InputNotCommitted, "round 1")


@BOTH
def test_malformed_proof(scheme):
    expected, claim, delivery, _ = delivered(scheme)
    given = replace(delivery.training_input, proof=(b"short",))
    wrong = replace(delivery, training_input=given)
    refused(expected, claim, wrong, WidthError, r"proof\[0\]")


@BOTH
@pytest.mark.parametrize(
    "change", [{"rank": 1}, {"gradient_words": 21}, {"input_words": 8}, {"advice_words": 6}]
)
def test_packages_of_another_kind(scheme, change):
    expected, claim, delivery, _ = delivered(scheme)
    refused(replace(expected, **change), claim, delivery, ShareError, "expected: scheme")


def test_package_of_the_other_scheme():
    expected, claim, delivery, _ = delivered(Scheme.SHARES)
    other = replace(expected, scheme=Scheme.MPC)
    refused(other, claim, delivery, ShareError, "of scheme shares")


def test_gradient_of_another_commitment():
    expected, claim, delivery, _ = delivered(Scheme.SHARES)
    other = replace(claim, commitment=bytes(32))
    refused(expected, other, delivery, CommitmentMismatch, "leaf hashes do not match")


@BOTH
@pytest.mark.parametrize("name", ["gradient", "advice"])
def test_component_that_is_not_its_leaf(scheme, name):
    expected, claim, delivery, _ = delivered(scheme)
    package = getattr(delivery, name)
    first, second = package.held
    damaged = replace(package, held=(replace(first, salt=bytes(32)), second))
    wrong = replace(delivery, **{name: damaged})
    refused(expected, claim, wrong, ComponentMismatch, "does not match its leaf")


@BOTH
def test_same_entropy_makes_the_same_packages(scheme):
    one, other = (commit(scheme, Subject.GRADIENT, GRADIENT, bytes([k] * 32)) for k in (1, 1))
    assert one == other
    third = commit(scheme, Subject.GRADIENT, GRADIENT, bytes([2] * 32))
    assert third.commitment != one.commitment
    as_input = commit(scheme, Subject.INPUT, GRADIENT, bytes([1] * 32))
    assert as_input.packages[0].held[0].sent != one.packages[0].held[0].sent
