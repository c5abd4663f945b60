"""A rule of another package: no coordinate of the replay may be far off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest

from opfl_chain.circuits.arithmetic import add_public, negative, to_boolean
from opfl_chain.circuits.boolean import BooleanCircuit, Shared
from opfl_chain.protocol.documents import Natural
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Evidence, Forms, Observation
from opfl_chain.rules.registry import RULES
from opfl_chain.rules.rule import Rule
from opfl_chain.system.plugins import Plugin


class LinfBoundary(Boundary):
    rule: Literal["linf"] = "linf"
    infinity: Natural


class LinfRule(Rule[LinfBoundary]):
    boundary = LinfBoundary
    alpha = 2.0

    def calibrate(
        self, policy: Policy, observations: Sequence[Observation], alpha: float
    ) -> LinfBoundary:
        infinity = math.ceil(alpha * max(map(distance, observations)))
        size = observations[0].gradient.size
        return LinfBoundary.of_policy(policy, size, infinity=infinity)

    def causes(self, boundary: LinfBoundary, observation: Observation) -> list[str]:
        return ["infinity"] if distance(observation) > boundary.infinity else []

    def faults(
        self, circuit: BooleanCircuit, boundary: LinfBoundary, evidence: Evidence, forms: Forms
    ) -> Shared:
        gradient, replay = evidence.gradient, evidence.replay.gradient
        apart = gradient[0] - replay[0], gradient[1] - replay[1]
        both = (
            add_public(circuit.rank, apart, boundary.infinity),
            add_public(circuit.rank, negative(apart), boundary.infinity),
        )
        words = to_boolean(circuit, *(np.concatenate(part) for part in zip(*both, strict=True)))
        return words.local(lambda w: w >> np.uint64(63))


def distance(observation: Observation) -> int:
    return int(np.abs(observation.gradient - observation.replay.words).max())


RULE = LinfRule()


def install(monkeypatch: pytest.MonkeyPatch, target: str = "linf_rule:RULE") -> None:
    """Pretend that a package with this entry point is installed."""
    plugin = Plugin("opfl_chain.rules", "linf", target, "linf-rule", "1.0")
    monkeypatch.setattr(RULES, "_loaded", {})
    monkeypatch.setitem(RULES.__dict__, "_plugins", {"linf": plugin})
