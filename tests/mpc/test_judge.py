"""A whole round, from the clients' deliveries to the verdict, in both schemes."""

from dataclasses import replace

import numpy as np
import pytest
from judged_round import ROUND, STEP, Client, entropy, judgements, outcomes, passed, policy, rules

from opfl_chain.mpc.audit import judge as judge_module
from opfl_chain.mpc.audit.judge import Finding, Rules, exchange_findings, judge
from opfl_chain.mpc.local import MemoryCommittee
from opfl_chain.mpc.session.errors import PluginMismatch, ProgramMismatch
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.protocol.aggregate import open_sum, sum_components
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.shares import commit
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.rules.paper_rule import PaperRule
from opfl_chain.rules.registry import RULES, installed_digests

BOTH = pytest.mark.parametrize("scheme", list(Scheme), ids=lambda scheme: scheme.value)


@pytest.fixture(scope="module")
def committee():
    with MemoryCommittee() as committee:
        yield committee


def other_packages(client, subject, words, seed):
    """Return a sharing of words that differ from the committed ones."""
    return commit(client.scheme, subject, words, entropy(seed)).packages


@BOTH
def test_verdict_on_a_mixed_round(committee, scheme):
    honest, unaudited = Client(0, scheme), Client(1, scheme, audited=False)
    cheat = Client(4, scheme, gradient=2 * STEP.gradient)
    unseen_cheat = Client(6, scheme, audited=False, gradient=2 * STEP.gradient)
    found = judgements(committee, scheme, [honest, unaudited, cheat, unseen_cheat])
    for judgement in found:
        assert judgement.verdict.passed == {0, 1, 6}
        assert judgement.outcomes == {0: Outcome.PASSED, 4: Outcome.OUTSIDE}
    sums = [sum_components(judgement.accepted.values(), 3) for judgement in found]
    total = open_sum({rank: own for rank, (own, _) in enumerate(sums)})
    assert np.array_equal(total, 4 * STEP.gradient)


@BOTH
def test_missing_deliveries(committee, scheme):
    nothing, no_input, to_one = (Client(index, scheme) for index in range(3))
    nothing.deliveries = [None] * 3
    for rank in range(3):
        no_input.redeliver(rank, training_input=None)
    to_one.deliveries[1] = None
    assert outcomes(committee, scheme, [nothing, no_input, to_one]) == dict.fromkeys(
        range(3), "UNANSWERED"
    )


@BOTH
def test_input_of_another_round_or_data_set(committee, scheme):
    other_round, other_index, stranger = (Client(index, scheme) for index in range(3))
    for rank in range(3):
        other_round.redeliver(rank, training_input=other_round.input_of(ROUND + 1, rank))
        borrowed = replace(
            other_index.input_of(ROUND + 1, rank), proof=tuple(other_index.tree.proof(ROUND))
        )
        other_index.redeliver(rank, training_input=borrowed)
        stranger.redeliver(rank, training_input=other_round.input_of(ROUND, rank))
    assert outcomes(committee, scheme, [other_round, other_index, stranger]) == dict.fromkeys(
        range(3), "UNANSWERED"
    )


@BOTH
def test_two_holders_with_different_copies(committee, scheme):
    client = Client(0, scheme, audited=False)
    client.redeliver(1, gradient=other_packages(client, Subject.GRADIENT, STEP.gradient, 77)[1])
    assert passed(committee, scheme, [client]) == set()


@BOTH
def test_component_that_does_not_match_its_leaf(committee, scheme):
    client = Client(0, scheme, audited=False)
    package = client.deliveries[2].gradient
    first, second = package.held
    sent = bytes([first.sent[0] ^ 1]) + first.sent[1:]
    damaged = replace(package, held=(replace(first, sent=sent), second))
    client.redeliver(2, gradient=damaged)
    assert passed(committee, scheme, [client]) == set()


@BOTH
@pytest.mark.parametrize("audited", [False, True])
def test_other_words_than_were_committed_to(committee, scheme, audited):
    client = Client(0, scheme, audited=audited)
    packages = other_packages(client, Subject.GRADIENT, STEP.gradient + 1, 5)
    for rank in range(3):
        client.redeliver(rank, gradient=packages[rank])
    assert passed(committee, scheme, [client]) == set()
    found = "OUTSIDE" if scheme is Scheme.MPC else "UNANSWERED"
    assert outcomes(committee, scheme, [client]) == ({0: found} if audited else {})


@BOTH
def test_other_input_than_was_committed_to(committee, scheme):
    client = Client(0, scheme)
    packages = other_packages(client, Subject.INPUT, STEP.training_input + 1, 5)
    for rank in range(3):
        delivered = replace(client.deliveries[rank].training_input, package=packages[rank])
        client.redeliver(rank, training_input=delivered)
    expected = "OUTSIDE" if scheme is Scheme.MPC else "UNANSWERED"
    assert outcomes(committee, scheme, [client]) == {0: expected}


def test_package_of_another_size_rank_or_scheme(committee):
    short, other_rank, other_scheme = (Client(index, Scheme.SHARES) for index in range(3))
    for rank in range(3):
        words = STEP.gradient[:-1]
        short.redeliver(rank, gradient=other_packages(short, Subject.GRADIENT, words, 5)[rank])
    other_rank.deliveries = other_rank.deliveries[1:] + other_rank.deliveries[:1]
    other_scheme.deliveries = Client(2, Scheme.MPC).deliveries
    assert outcomes(committee, Scheme.SHARES, [short, other_rank, other_scheme]) == dict.fromkeys(
        range(3), "UNANSWERED"
    )


def test_a_refusal_is_explained(committee):
    client = Client(3, Scheme.SHARES)
    client.deliveries = [None] * 3
    told = []
    judgements(
        committee, Scheme.SHARES, [client], lambda claim, reason: told.append((claim, reason))
    )
    assert told == [(client.claim, "client 3 delivered nothing")] * 3


def test_members_that_judge_different_rounds(committee):
    client = Client(0, Scheme.SHARES)
    common = rules(Scheme.SHARES)

    def member(session):
        audited = session.rank != 2
        claim = replace(client.claim, audited=audited)
        delivered = {0: client.deliveries[session.rank]}
        return judge(session, common, STEP.weights, [claim], delivered)

    with pytest.raises(ProgramMismatch, match="findings on a round"):
        committee.each(member)


def test_members_with_different_plugins_refuse_before_anything_runs(committee, monkeypatch):
    """Member 2 has another version of the rule, and the others are told which plug-in differs."""
    ran = []
    monkeypatch.setattr(Runtime, "run", lambda *_, **__: ran.append("replay"))
    monkeypatch.setattr(Finding, "encode", lambda finding: ran.append("findings"))

    def member(session):
        digest = ("ab" if session.rank == 2 else "cd") * 32
        plugins = {"model:small": "ef" * 32, "rule:median": digest}
        return session.call(
            exchange_findings, subject=bytes(32), plugins=plugins, findings=[Finding()]
        )

    with pytest.raises(
        PluginMismatch, match="plug-in rule:median with digest abababababab, this member has cdcd"
    ):
        committee.each(member)
    assert not ran


def test_a_missing_plugin_is_a_difference(committee):
    def member(session):
        plugins = {} if session.rank == 1 else {"rule:median": "ab" * 32}
        return session.call(exchange_findings, subject=bytes(32), plugins=plugins, findings=[])

    with pytest.raises(PluginMismatch, match="with digest none, this member has abab") as found:
        committee.each(member)
    assert (found.value.rank, found.value.plugin) == (1, "rule:median")


def test_judging_compares_the_plugins_of_the_policy_as_installed(committee, monkeypatch):
    told = []
    monkeypatch.setattr(
        judge_module, "installed_digests", lambda policy: told.append(policy) or {"rule:m": ""}
    )
    client = Client(0, Scheme.SHARES, audited=False)
    assert passed(committee, Scheme.SHARES, [client]) == {0}
    assert told == [policy(Scheme.SHARES)] * 3


def test_boundary_of_another_policy():
    other = policy(Scheme.MPC)
    with pytest.raises(DocumentError, match="calibrate with the policy of the job"):
        Rules(other, rules(Scheme.SHARES).boundary, lambda count: None)


class Median(PaperRule):
    name = "median"


def test_digests_are_those_of_the_plugins_that_the_policy_names():
    other = {"model:unknown": "12" * 32, "rule:median": "34" * 32}
    plain = policy(Scheme.SHARES)
    named = Policy.from_mapping(plain.model_dump(mode="json") | {"plugins": other})
    assert installed_digests(plain) == installed_digests(named) == {}
    with RULES.plugged_in("median", Median()):
        (name, digest), *more = installed_digests(named).items()
        assert (name, digest, more) == ("rule:median", RULES.plugin("median").digest, [])
