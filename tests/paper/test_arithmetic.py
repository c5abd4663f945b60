"""Rates, costs and deterrence on cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from opfl_chain.bench.round_costs import RoundCosts
from opfl_chain.paper.costs import CLIENTS, ROUNDS, cost_rows
from opfl_chain.paper.deterrence import (
    SKIPPED,
    audited_cheats,
    deterrence,
    rejection_chances,
    strategy_rows,
    tickets_of,
)
from opfl_chain.paper.instances import best_candidates, rejection_rate, success_rate
from opfl_chain.paper.results import LabSettings
from opfl_chain.paper.strategies import VERSION_1, VERSION_2, ends_in_version_2, strategies
from opfl_chain.protocol.audit_exchange import conclude
from opfl_chain.protocol.economics import BestResponse, Deterrence
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.randomness import audit_rate_of, is_audited
from opfl_chain.protocol.verdict import Outcome


@pytest.mark.parametrize(
    ("effects", "acceptances", "rate"),
    [
        ([True, True, False, False], [1, 0, 1, 0], 0.25),  # accepted and effective: one of four
        ([True, True], [0.5, 0.25], 0.375),  # by chance
        ([True, False], [0, 0], 0.0),  # fell back to the honest gradient, and stays counted
    ],
)
def test_success_is_effect_times_acceptance(
    effects: list[bool], acceptances: list[float], rate: float
) -> None:
    assert success_rate(effects, acceptances) == rate


def test_no_attempts_have_no_rate() -> None:
    with pytest.raises(ValueError, match="0 effects and 0 acceptances"):
        success_rate([], [])
    with pytest.raises(ValueError, match="1 effects and 2 acceptances"):
        success_rate([True], [1, 1])


def test_the_best_candidate_is_effective_and_accepted() -> None:
    effects = np.array([[True, False, True], [True, True, True], [False, True, True]])
    accepted = np.array([[0.1, 1.0, 0.3], [0.9, 0.2, 0.3], [1.0, 0.4, 0.2]])
    assert best_candidates(effects, accepted).tolist() == [1, 2, 0]


def test_honest_rejections_are_expected_ones() -> None:
    rate = rejection_rate([1, 1, 0.5, 0])
    assert (rate["honest_steps"], rate["rejected"], rate["frr"]) == (4, 1.5, 0.375)
    assert rejection_rate([1.0] * 100)["frr_upper95"] == pytest.approx(0.0295, abs=1e-4)


def test_costs_add_up() -> None:
    stages = {
        "naive_replay": 1.0,
        "replay": 0.5,
        "guided_replay": 0.3,
        "guided_boundary": 0.2,
        "proved_answers": 0.1,
        "plain_upload": 0.001,
        "guided_upload": 0.001,
        "proved_upload": 0.003,
        "guided_client": 0.004,
        "proved_client": 0.05,
    }
    beside = RoundCosts(CLIENTS, 0.01, 0.002, 0.001, 10, 0.0001, 5, 0.005, 0.01, 1_000_000)
    rows = cost_rows(stages, beside)["rows"]
    naive, full, everything, _, _, hundredth, *proved = rows
    gradients = CLIENTS * ROUNDS
    assert naive["seconds"] == pytest.approx(gradients * 1.0001 + ROUNDS * 0.005)
    assert full["seconds"] == pytest.approx(gradients * 0.5001 + ROUNDS * 0.005)
    assert everything["seconds"] == pytest.approx(gradients * 0.5031 + ROUNDS * 0.015)
    expected = gradients * (0.01 * 0.5001 + 0.003) + ROUNDS * 0.015
    assert hundredth["seconds"] == pytest.approx(expected)
    assert hundredth["times_cheaper_than_full_mpc"] == pytest.approx(full["seconds"] / expected)
    without = expected - ROUNDS * 0.01
    ratio = hundredth["times_cheaper_than_full_mpc_without_chain_node"]
    assert ratio == pytest.approx(full["seconds"] / without)
    counted = gradients * 0.01 * 0.5 + ROUNDS * 0.005
    ratio = hundredth["times_cheaper_than_naive_full_mpc_as_the_paper_counts"]
    assert ratio == pytest.approx((gradients * 1.0 + ROUNDS * 0.005) / counted)
    assert hundredth["gas"] == ROUNDS * 1_000_000
    assert hundredth["deposit"] == pytest.approx(1.76, abs=0.01)
    assert hundredth["deposit_ratio"] == pytest.approx(1.59, abs=0.01)
    assert [row["audit_rate"] for row in proved] == [1, 0.1, 0.05, 0.01]
    # A proof is larger than advice: its transfer counts for those who are audited.
    without = gradients * (0.003 + 0.01 * (0.1 + 0.0001 + 0.002)) + ROUNDS * 0.005
    assert proved[-1]["seconds_without_chain_node"] == pytest.approx(without)
    assert proved[-1]["client_seconds"] == pytest.approx(ROUNDS * 0.05)
    ratio = proved[-1]["times_cheaper_than_naive_full_mpc_with_clients"]
    assert ratio == pytest.approx(naive["seconds"] / (without + ROUNDS * 0.05))


def test_detection_is_as_the_formula_says() -> None:
    tickets = tickets_of(300, seed=1)
    audits = audited_cheats(tickets, 0.02)
    assert audits.max() <= SKIPPED
    assert audits.mean() == pytest.approx(0.02 * SKIPPED, abs=0.3)
    detected = float((audits > 0).mean())
    assert detected == pytest.approx(Deterrence().detection_probability(0.02), abs=0.08)


def test_tickets_audit_whom_the_protocol_audits() -> None:
    tickets = tickets_of(3, seed=5)
    name = (5).to_bytes(8, "big") + (2).to_bytes(8, "big")
    client = "0x" + keccak256(b"client", name)[:20].hex()
    seeds = [keccak256(b"seed", name, t.to_bytes(8, "big")) for t in range(SKIPPED)]
    expected = sum(is_audited(seed, client, audit_rate_of(0.3)) for seed in seeds)
    assert audited_cheats(tickets, 0.3)[2] == expected


def test_undetected_cheat_always_pays() -> None:
    general = {
        "runs": [
            {"attacks": [{"attack": "reverse:1", "asr": {"opfl-guided": 0.0}}]},
            {"attacks": [{"attack": "reverse:1", "asr": {"opfl-guided": 0.25}}]},
        ]
    }
    drift = {"rows": [{"verifier": "opfl-guided", "accepted": 998.0, "rounds": 1000}]}
    chances, source = rejection_chances(general, drift)
    assert chances == {"reverse:1": 0.75, "poison": 0.0, "drift": pytest.approx(0.002)}
    assert source == "general-attacks and drift"
    report = deterrence(replace(LabSettings.quickly(), simulated_jobs=30), general)
    for row in report["profits"]:
        if row["attack"] == "poison":
            assert row["profit"] == 1
        elif row["audit_rate"] == 0.10:
            assert row["profit"] == pytest.approx(1 - row["deposit"], abs=0.3)


def test_no_strategy_pays_at_the_recommended_deposit():
    rows = strategy_rows(tickets_of(400, 7))
    names = {row["strategy"] for row in rows}
    assert {"withhold the answer", "evade", "cheat rarely", "collude with a member"} < names
    for row in rows:
        if row["strategy"] == "honest":
            assert row["gain"] == row["expected_gain"] == 0
        else:
            assert row["expected_gain"] < 0, row


def gains(rules):
    """Gain of each strategy over honesty at the lowest rate, simulated."""
    rows = strategy_rows(tickets_of(200, 7), rules)
    return {row["strategy"]: row["gain"] for row in rows if row["audit_rate"] == 0.01}


def test_what_version_1_let_a_cheat_choose_did_pay():
    found = gains(VERSION_1)
    for name in ("withhold the answer", "evade", "collude with a member"):
        assert found[name] > 80
    assert found["cheat always"] < 0 and found["cheat at the end and leave"] < 0


def test_every_way_to_act_after_the_seed_costs_the_whole_deposit():
    prices = {each.name: each.price(VERSION_2) for each in strategies(SKIPPED)}
    assert set(prices.values()) == {1.0} == {BestResponse().cheapest_penalty}


def undecided_pass(*said, **more):
    found = conclude(*said, **more)
    return replace(found, outcome=found.outcome or Outcome.PASSED)


@pytest.mark.parametrize(
    ("changed", "pays"),
    [
        ({"prices": {Outcome.OUTSIDE: 1.0, Outcome.UNANSWERED: 0.1}}, "withhold the answer"),
        ({"prices": {Outcome.UNANSWERED: 1.0, Outcome.OUTSIDE: 0.1}}, "evade"),
        ({"ends": partial(ends_in_version_2, has_standby=False)}, "collude with a member"),
        ({"ends": partial(ends_in_version_2, conclude=undecided_pass)}, "collude with a member"),
        ({"unbonding": VERSION_2.audit - 1}, "cheat at the end and leave"),
    ],
)
def test_a_rule_with_a_cheaper_choice_shows(changed, pays):
    assert gains(VERSION_2)[pays] < 0 < gains(replace(VERSION_2, **changed))[pays]
