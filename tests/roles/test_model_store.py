"""Models follow from aggregates, and everything that is received is checked."""

from types import SimpleNamespace

import numpy as np
import pytest
from contract_player import passes_of
from played import QuietNode

from opfl_chain.protocol.aggregate import NOTHING, aggregate_hash, weights_hash
from opfl_chain.protocol.statements import RoundResult
from opfl_chain.roles.job import Job
from opfl_chain.roles.model_store import SCHEMA, Models
from opfl_chain.roles.settings import JobUnusable, ModelMissing
from opfl_chain.roles.state import State

NOBODY_HAS_IT = "nobody has it"


def nobody(wanted):
    raise ModelMissing(NOBODY_HAS_IT)


class ModelNode(QuietNode):
    SCHEMA = SCHEMA


@pytest.fixture(scope="module")
def world(player, tmp_path_factory):
    job = player.create_real_job(rounds=9)
    player.join(job, player.members)
    player.enrol(job, player.clients[:3])
    with ModelNode(player.settings(player.operator, tmp_path_factory.mktemp("node"), job)) as node:
        models = Models(node.view, node.state)
        yield SimpleNamespace(player=player, job=job, node=node, view=node.view, models=models)


@pytest.fixture
def another(world, tmp_path):
    """Models of a daemon that has seen only the chain."""
    state = State(tmp_path / "state.sqlite", "another", SCHEMA)
    yield Models(world.view, state)
    state.close()


@pytest.fixture(scope="module")
def words(world):
    size = world.player.boundary.coordinates
    return np.random.default_rng(0).integers(-(2**30), 2**30, size, dtype="<i8")


def play(world, passed, words=None, model=None):
    """A final round; by default with what the members would make of the sum."""
    player = world.player
    round_id = player.open_round(world.job)
    roll = player.roll(round_id, [0, 1, 2])
    player.commit_roll(round_id, roll)
    player.publish_beacon(round_id, roll)
    player.attest(round_id, passed, player.members[:2])
    world.node.catch_up()
    before = world.view.latest_round()
    assert world.view.decided_passes(before) == passes_of(passed)
    world.models.follow(nobody)
    aggregate, made = world.models.propose(before, words, len(passed))
    stated = model or made
    statement = player.of_round(round_id, RoundResult, before.verdict_hash, aggregate, stated)
    call = player.contracts.rounds.finalise(round_id, aggregate, stated, player.two(statement))
    player.send(player.operator, call)
    world.node.catch_up()
    return before, aggregate, made


def test_the_first_model_is_that_of_the_policys_seed(world, another):
    first = world.node.job.terms.model_hash
    assert another.required(first).size == another.layout.size
    with pytest.raises(ModelMissing, match="is not here yet"):
        another.required(b"\1" * 32)


def test_a_job_that_starts_from_another_model_is_refused(player, chain, tmp_path):
    job_id = player.create_real_job(model_hash=b"\1" * 32)
    job = Job.find(chain.rpc, player.deployment, job_id)

    class View:
        pass

    view, state = View(), State(tmp_path / "state.sqlite", "another", SCHEMA)
    view.job = job
    with pytest.raises(JobUnusable, match="starts from model 0x0101"):
        Models(view, state)
    state.close()


def test_an_aggregate_makes_the_same_model_for_everybody(world, another, words):
    before, aggregate, made = play(world, (0, 1, 2), words)
    assert made != before.model_hash
    asked = []
    another.follow(lambda wanted: asked.append(wanted) or words)
    assert asked == [aggregate]
    assert np.array_equal(another.required(made), world.models.required(made))
    another.follow(nobody)  # once is enough


def test_aggregate_with_another_hash_is_refused(world, another, words):
    with pytest.raises(ModelMissing, match="have another hash"):
        another.follow(lambda wanted: words + 1)
    with pytest.raises(ModelMissing, match=NOBODY_HAS_IT):
        another.follow(nobody)


def test_with_fewer_contributions_than_the_terms_ask_for_the_model_stays(world, another, words):
    before, aggregate, made = play(world, (0, 1), NOTHING)
    assert made == before.model_hash
    assert aggregate == aggregate_hash(NOTHING)
    another.follow(lambda wanted: NOTHING if wanted == aggregate else words)
    assert another.weights(made) is not None


def test_an_update_that_is_not_finite_changes_nothing(world, words):
    """No honest sum makes one, so the weights are such that every update is."""
    models, round_ = world.models, world.view.latest_round()
    statement = "UPDATE models SET weights = ? WHERE hash = ?"
    weights = models.required(round_.model_hash)
    beyond = np.full_like(weights, np.inf)
    models._state.write(statement, beyond.tobytes(), round_.model_hash)
    try:
        assert models.propose(round_, words, 3) == (aggregate_hash(words), weights_hash(beyond))
    finally:
        models._state.write(statement, weights.tobytes(), round_.model_hash)


def test_after_a_reorganisation_the_model_that_the_chain_names_now_counts(world, another, words):
    another.follow(lambda wanted: words if wanted == aggregate_hash(words) else NOTHING)
    rounds = world.view.finalised_rounds()
    another._state.write("UPDATE followed SET model = ? WHERE round = 0", b"\1" * 32)
    another.follow(nobody)
    kept = another._state.one("SELECT model FROM followed WHERE round = 0")
    assert kept[0] == rounds[0].next_model_hash


def test_a_result_that_does_not_follow_is_called_false(world, another, words):
    play(world, (0, 1, 2), words, model=b"\5" * 32)
    with pytest.raises(JobUnusable, match="two members signed a false result"):
        another.follow(lambda wanted: words if wanted == aggregate_hash(words) else NOTHING)


def test_repeated_proposal_is_the_same(world, words):
    models, round_ = world.models, world.view.rounds()[0]
    assert models.propose(round_, words, 3) == models.propose(round_, words, 3)
    assert models.aggregate(aggregate_hash(words)) == words.tobytes()
