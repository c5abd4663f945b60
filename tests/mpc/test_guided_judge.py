"""A whole round with guided replays, among three processes."""

from dataclasses import replace

import pytest
from guided_step import ADVICE, GuidedStep, guided_boundary, guided_replay
from judged_round import entropy

from opfl_chain.learning.lenet import LENET_61706 as MODEL
from opfl_chain.mpc.audit.judge import Rules, judge
from opfl_chain.mpc.local import LocalCommittee
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.delivery import Claim, Delivery, InputDelivery
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.shares import commit, share_advice

POLICY = default_policy(MODEL)
STEP = GuidedStep(3, certainty=8)
SHARES = Scheme.SHARES


def rules():
    boundary = guided_boundary(policy_hash="0x" + POLICY.hash.hex())
    return Rules(POLICY, boundary, guided_replay)


class Client:
    """One audited contribution to round 0."""

    def __init__(self, index, gradient=None, advice=None):
        words = STEP.words if gradient is None else gradient
        committed = commit(SHARES, Subject.GRADIENT, words, entropy(index, 0))
        given = commit(SHARES, Subject.INPUT, STEP.training_input, entropy(index, 1))
        tree = dataset_tree([given.commitment])
        advised = STEP.advice_words if advice is None else advice
        packages = share_advice(SHARES, advised, entropy(index, 1))
        self.index = index
        self.claim = Claim(index, 0, committed.commitment, tree.root, audited=True)
        self.deliveries = [
            Delivery(
                committed.packages[rank],
                InputDelivery(given.packages[rank], given.commitment, tuple(tree.proof(0))),
                packages[rank],
            )
            for rank in range(3)
        ]


def outcomes(committee, clients):
    claims = [client.claim for client in clients]

    def member(session):
        delivered = {client.index: client.deliveries[session.rank] for client in clients}
        return judge(session, rules(), STEP.weights, claims, delivered).outcomes

    found = committee.each(member)
    assert found[0] == found[1] == found[2]
    return {client: outcome.name for client, outcome in found[0].items()}


def test_honest_and_cheating_clients():
    honest, cheat = Client(0), Client(1, gradient=STEP.words + STEP.words // 1000)
    silent, split = Client(2), Client(3)
    for rank in range(3):
        silent.deliveries[rank] = replace(silent.deliveries[rank], advice=None)
    other = share_advice(SHARES, STEP.advice_words, entropy(99))
    split.deliveries[1] = replace(split.deliveries[1], advice=other[1])
    expected = {0: "PASSED", 1: "OUTSIDE", 2: "UNANSWERED", 3: "UNANSWERED"}
    with LocalCommittee() as local:
        with local.session(seconds=120) as committee:
            assert outcomes(committee, [honest, cheat, silent, split]) == expected
        with local.session(seconds=120) as committee:  # and once more, with fresh randomness
            assert outcomes(committee, [honest, cheat, silent, split]) == expected


def test_boundary_and_replay_of_different_kinds():
    plain = default_policy(MODEL, rule="paper")
    boundary = guided_boundary(policy_hash="0x" + plain.hash.hex())
    with pytest.raises(DocumentError, match="cannot be used with"):
        Rules(plain, boundary, guided_replay)


def test_the_rules_know_the_format_of_advice():
    assert rules().advice_format == ADVICE
