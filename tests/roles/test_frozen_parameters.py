"""A LeNet with a frozen first layer through training, an audit, the aggregate and an attack."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from opfl_chain.adversaries.clients import conduct_named
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.errors import UpdateInvalid
from opfl_chain.learning.registry import model_named
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.mpc.audit.judge import Rules, judge
from opfl_chain.mpc.local import MemoryCommittee
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.protocol.aggregate import open_sum, sum_components, weights_hash
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.client.conduct import Conduct
from opfl_chain.roles.client.contribution import Contributor
from opfl_chain.roles.model_store import SCHEMA, Models
from opfl_chain.roles.state import State
from opfl_chain.rules.guided import GUIDED_GRID, GuidedBoundary

MODEL = model_named("lenet-61706", frozen="conv1")
LAYOUT = MODEL.layout
FIRST_LAYER = 5 * 5 * 6 + 6
FIRST, SECOND = b"\1" * 32, b"\2" * 32
"""Openings of the two rounds."""
POLICY = default_policy(MODEL)
TERMS = SimpleNamespace(
    rounds=2,
    fewest_contributions=2,
    model_hash=weights_hash(LAYOUT.flatten(initial_parameters(LAYOUT, POLICY.seeds.model))),
)


@cache
def job():
    boundary = GuidedBoundary.from_mapping(
        {
            "policy_hash": "0x" + POLICY.hash.hex(),
            "spu_version": "0.9.5",
            "coordinates": LAYOUT.trainable.size,
            "grid": list(GUIDED_GRID),
            "allowance_shift": 13,
            "scale_quantile": 999,
            "resolution_bits": 26,
            "bounds": [64] * 20 + [256, 512, 2048],
            "infinity": 1 << 14,
            "mask_tolerance": 64,
            "ceiling_tolerance": 64,
        }
    )
    return SimpleNamespace(id=1, policy=POLICY, boundary=boundary, terms=TERMS)


@cache
def client(number, attack=None):
    data = ClientData(POLICY, synthetic_dataset().train, number)
    conduct = conduct_named(attack) if attack else Conduct()
    secret = bytes([number]) * 32
    return Contributor(POLICY, job().boundary, data, secret, conduct, rounds=TERMS.rounds)


@pytest.fixture
def models(tmp_path):
    state = State(tmp_path / "state.sqlite", "models", SCHEMA)
    yield Models(SimpleNamespace(job=job()), state)
    state.close()


def proposed(models, model_hash, words, count=2):
    _, made = models.propose(SimpleNamespace(model_hash=model_hash), words, count)
    return made


def encoded(gradient):
    return POLICY.fixed_point.encode(LAYOUT.trainable.unflatten(gradient))


def summed(contributions):
    held = [encoded(contribution.gradient) for contribution in contributions]
    return np.sum(held, axis=0, dtype="<i8")


def test_the_policy_freezes_the_layer_and_its_boundary_does_not_count_it():
    assert POLICY.model.parameters == {"frozen": "conv1"}
    assert LAYOUT.size - LAYOUT.trainable.size == FIRST_LAYER
    committed = client(0).committed_gradient(FIRST, np.zeros(LAYOUT.trainable.size, np.float32))
    assert committed.packages[0].count == job().boundary.coordinates


def test_an_update_moves_the_other_layers_and_keeps_averages_of_them_only(models):
    before = models.required(TERMS.model_hash)
    words = summed([client(number).make(0, FIRST, before, b"") for number in (0, 1)])
    made = proposed(models, TERMS.model_hash, words)
    assert made != TERMS.model_hash
    start, end = LAYOUT.unflatten(before), LAYOUT.unflatten(models.required(made))
    for name in LAYOUT.frozen.names:
        assert np.array_equal(start[name], end[name])
    for name in LAYOUT.trainable.names:
        assert not np.array_equal(start[name], end[name]), name
    again = proposed(models, made, words)  # with the averages that were stored
    assert np.array_equal(models.required(again)[:FIRST_LAYER], before[:FIRST_LAYER])


def test_an_aggregate_of_another_size_is_an_error_and_not_a_round_without_an_update(models):
    with pytest.raises(UpdateInvalid, match=r"61,706 coordinates, the model trains 61,550"):
        proposed(models, TERMS.model_hash, np.zeros(LAYOUT.size, "<i8"))


@pytest.mark.parametrize("attack", ["free-rider", "adaptive", "tail-10", "drift", "reuse"])
def test_attacks_submit_a_gradient_of_the_trainable_parameters(models, attack):
    cheat, weights = client(2, attack), models.required(TERMS.model_hash)
    first = cheat.make(0, FIRST, weights, b"")
    made = proposed(models, TERMS.model_hash, encoded(first.gradient) * 2)
    second = cheat.make(1, SECOND, models.required(made), first.memory)
    assert first.gradient.size == second.gradient.size == LAYOUT.trainable.size


def test_a_free_rider_submits_the_last_change_of_the_trained_layers(models):
    cheat, weights = client(2, "free-rider:0.001"), models.required(TERMS.model_hash)
    first = cheat.make(0, FIRST, weights, b"")
    honest = summed([client(number).make(0, FIRST, weights, b"") for number in (0, 1)])
    after = models.required(proposed(models, TERMS.model_hash, honest))
    submitted = cheat.make(1, SECOND, after, first.memory).gradient.astype(np.float64)
    change = (weights - after)[FIRST_LAYER:]
    cosine = submitted @ change / (np.linalg.norm(submitted) * np.linalg.norm(change))
    assert cosine > 0.99


def test_members_audit_the_step_and_aggregate_what_passed(models):
    """Two honest clients and a free rider in the second round, judged by three members."""
    first = models.required(TERMS.model_hash)
    clients = [client(0), client(1), client(2, "free-rider:0.1")]
    earlier = [each.make(0, FIRST, first, b"") for each in clients]
    model = proposed(models, TERMS.model_hash, summed(earlier[:2]))
    weights = models.required(model)
    contributions = [
        each.make(1, SECOND, weights, before.memory)
        for each, before in zip(clients, earlier, strict=True)
    ]
    claims = [
        Claim(
            number,
            1,
            each.committed_gradient(SECOND, made.gradient).commitment,
            each.dataset.root,
            True,
        )
        for number, (each, made) in enumerate(zip(clients, contributions, strict=True))
    ]
    delivered = [
        each.deliveries(1, SECOND, made) for each, made in zip(clients, contributions, strict=True)
    ]
    rules = Rules(POLICY, job().boundary, Replays(POLICY))
    arrays = LAYOUT.unflatten(weights)

    def member(session):
        own = {number: each[session.rank] for number, each in enumerate(delivered)}
        return judge(session, rules, arrays, claims, own)

    with MemoryCommittee() as committee:
        judgements = committee.each(member)
    verdicts = [found.verdict for found in judgements]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert set(verdicts[0].passed) == {0, 1}
    outcomes = [Outcome.PASSED, Outcome.PASSED, Outcome.OUTSIDE]
    assert judgements[0].outcomes == dict(enumerate(outcomes))

    sums = [sum_components(list(found.accepted.values()), 2) for found in judgements]
    total = open_sum({rank: held[0] for rank, held in enumerate(sums)})
    assert np.array_equal(total, summed(contributions[:2]))
    final = models.required(proposed(models, model, total))
    assert np.array_equal(final[:FIRST_LAYER], first[:FIRST_LAYER])
    assert not np.array_equal(final[FIRST_LAYER:], weights[FIRST_LAYER:])
