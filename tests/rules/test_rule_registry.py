"""Rules of plug-ins are found by name, and judge inside MPC and in the clear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from constructed import GUIDED, PAPER, observation
from linf_rule import RULE, LinfRule, install
from three_members import compute, held, ring_components

from opfl_chain.protocol.errors import DocumentError
from opfl_chain.rules.evidence import Evidence, Forms, ReplayOutputs
from opfl_chain.rules.registry import (
    BUILTIN_RULES,
    DEFAULT_RULE,
    RuleUnknown,
    boundary_from_json,
    rule_for,
    rule_named,
    rule_of,
)
from opfl_chain.rules.rule import MovesUnknown
from opfl_chain.system.plugins import PluginBroken

NEAR = observation(PAPER, (990, 0), (10, 5))
FAR = observation(PAPER, (999, 0), (1, 11))


def test_built_in_rules_are_known_by_name() -> None:
    assert [rule.name for rule in BUILTIN_RULES] == ["paper", "guided", "proved"]
    assert all(rule_named(rule.name) is rule for rule in BUILTIN_RULES)
    assert rule_for(PAPER).name == "paper"
    assert rule_for(GUIDED) is DEFAULT_RULE
    with pytest.raises(RuleUnknown, match="'linf' is unknown, known rules: paper, guided, proved"):
        rule_named("linf")


def test_a_boundary_of_a_plug_in_is_read_by_its_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    boundary = rule_named("linf").calibrate(PAPER, [NEAR], 2)
    again = boundary_from_json(boundary.canonical_json)
    assert again == boundary
    assert rule_of(again) is RULE
    assert rule_of(again).causes(again, NEAR) == []
    assert rule_of(again).causes(again, FAR) == ["infinity"]


def test_a_boundary_of_a_rule_that_is_not_installed_is_refused() -> None:
    boundary = RULE.calibrate(PAPER, [NEAR], 2)
    with pytest.raises(
        DocumentError, match="boundary rule is 'linf', known rules: paper, guided, proved"
    ):
        boundary_from_json(boundary.canonical_json)


def test_a_plug_in_that_is_no_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "linf_rule:LinfRule")
    with pytest.raises(PluginBroken, match=f"linf-rule 1.0.*{LinfRule.__name__}.*not a rule"):
        rule_named("linf")


@pytest.mark.parametrize("apart", [-11, -10, 0, 10, 11])
def test_the_circuit_of_a_plug_in_agrees_with_its_causes(apart: int) -> None:
    boundary = RULE.calibrate(PAPER, [NEAR], 2)
    words = NEAR.gradient.copy()
    words[7] += apart
    seen = replace(NEAR, replay=replace(NEAR.replay, words=words))
    rng = np.random.default_rng(0)
    gradient, replay = ring_components(seen.gradient, rng), ring_components(words, rng)

    def member(circuit):  # type: ignore[no-untyped-def]
        nothing = held(ring_components(np.zeros(0, np.int64), rng), circuit.rank)
        parts = held(gradient, circuit.rank), held(replay, circuit.rank)
        evidence = Evidence(parts[0], nothing, None, ReplayOutputs(parts[1]))
        return circuit.open(RULE.faults(circuit, boundary, evidence, Forms(0)))

    assert compute(member).any() == bool(RULE.causes(boundary, seen)) == (abs(apart) > 10)


def test_missing_part_of_a_rule_is_explained() -> None:
    boundary = RULE.calibrate(PAPER, [NEAR], 2)
    assert RULE.merged([boundary]) is None
    assert RULE.mask_tolerance(boundary) is None
    assert RULE.largest_distance(boundary, PAPER, np.zeros(3), 0) == np.inf
    with pytest.raises(MovesUnknown, match="rule linf does not tell how far"):
        RULE.allowed_moves(boundary, PAPER, np.zeros(3, np.float32), np.zeros(3), 0)
