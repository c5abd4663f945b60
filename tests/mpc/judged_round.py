"""Rounds of LeNet contributions, delivered to three members and judged by them."""

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from opfl_chain.lab.sample_step import Step
from opfl_chain.learning.lenet import LENET_61706 as MODEL
from opfl_chain.mpc.audit.judge import Rules, judge
from opfl_chain.mpc.audit.resharing import AS_SEALED
from opfl_chain.mpc.replay.compiler import compile_program
from opfl_chain.mpc.replay.programs import replay_program
from opfl_chain.mpc.session.executable import MpcOptions
from opfl_chain.protocol.commitments import Subject
from opfl_chain.protocol.delivery import Claim, Delivery, InputDelivery
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.shares import commit
from opfl_chain.rules.paper import PaperBoundary

ROUND = 2
STEP = Step(MODEL)


def policy(scheme):
    return Policy.from_mapping(
        {
            "model": {"name": MODEL.name},
            "optimizer": {"name": "sgd", "learning_rate": 0.01},
            "data": {
                "input_shape": [28, 28, 1],
                "classes": 10,
                "mean": [0.0],
                "std": [1.0],
                "batch_size": 1,
            },
            "seeds": {"model": 0, "data": 0},
            "fraction_bits": 22,
            "loss_scale": 64,
            "audit_rate": str(1 << 63),
            "commitment_scheme": scheme.value,
            "spu": {"version": "0.9.5", "exp_mode": "EXP_PADE"},
        }
    )


@cache
def replay(count):
    return compile_program(replay_program(MODEL, 1, 64.0, count), MpcOptions())


def rules(scheme):
    fields = STEP.boundary.model_dump() | {"policy_hash": "0x" + policy(scheme).hash.hex()}
    return Rules(policy(scheme), PaperBoundary.from_mapping(fields), replay)


def entropy(*labels):
    return np.random.default_rng(labels).bytes(32)


@dataclass
class Client:
    """One client's contribution to round 2, of a data set of five inputs."""

    index: int
    scheme: object
    audited: bool = True
    gradient: np.ndarray = field(default_factory=lambda: STEP.gradient)
    claim: Claim = None
    deliveries: list = None

    def __post_init__(self):
        inputs = [np.roll(STEP.training_input, t - ROUND) for t in range(5)]
        self.inputs = [
            commit(self.scheme, Subject.INPUT, words, entropy(self.index, t))
            for t, words in enumerate(inputs)
        ]
        self.tree = dataset_tree([each.commitment for each in self.inputs])
        committed = commit(self.scheme, Subject.GRADIENT, self.gradient, entropy(self.index, 9))
        self.claim = Claim(self.index, ROUND, committed.commitment, self.tree.root, self.audited)
        self.deliveries = [
            Delivery(committed.packages[rank], self.input_of(ROUND, rank) if self.audited else None)
            for rank in range(3)
        ]

    def input_of(self, t, rank):
        committed = self.inputs[t]
        return InputDelivery(
            committed.packages[rank], committed.commitment, tuple(self.tree.proof(t))
        )

    def redeliver(self, rank, **changes):
        self.deliveries[rank] = replace(self.deliveries[rank], **changes)


def judgements(committee, scheme, clients, report=lambda claim, reason: None, given=AS_SEALED):
    """Return each member's judgement."""
    claims = [client.claim for client in clients]
    common = rules(scheme)

    def member(session):
        rank = given.ranks[session.rank]
        delivered = {
            client.index: client.deliveries[rank]
            for client in clients
            if rank is not None and client.deliveries[rank] is not None
        }
        return judge(session, common, STEP.weights, claims, delivered, report, given)

    return committee.each(member)


def outcomes(committee, scheme, clients):
    """Return the names of the outcomes of all audits, on which all members must agree."""
    found = judgements(committee, scheme, clients)
    assert found[0].verdict == found[1].verdict == found[2].verdict
    assert found[0].outcomes == found[1].outcomes == found[2].outcomes
    return {client: outcome.name for client, outcome in found[0].outcomes.items()}


def passed(committee, scheme, clients):
    """Return the clients that pass, on which all members must agree."""
    found = judgements(committee, scheme, clients)
    assert found[0].verdict == found[1].verdict == found[2].verdict
    return set(found[0].verdict.passed)
