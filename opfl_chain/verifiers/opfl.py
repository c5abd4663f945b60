"""OPFL: compares a submitted gradient with the replay of its step, by the rule of a boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring import Reals
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Observation, Replay
from opfl_chain.rules.registry import rule_of
from opfl_chain.rules.rule import AnyRule
from opfl_chain.verifiers.verifier import (
    BoundaryOfAnotherPolicy,
    Penalty,
    Reference,
    ReferenceMissing,
    Vector,
    Verifier,
)


@dataclass(frozen=True)
class Opfl(Verifier):
    """The OPFL verifier, which judges by the rule of its boundary."""

    policy: Policy
    boundary: Boundary

    def __post_init__(self) -> None:
        ours = "0x" + self.policy.hash.hex()
        if self.boundary.policy_hash != ours:
            raise BoundaryOfAnotherPolicy(self.boundary.policy_hash, ours)

    @property
    def name(self) -> str:
        return f"opfl-{self.boundary.rule}"

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        """Apply the reference implementation, which the circuits match bit for bit."""
        words = self.policy.fixed_point.encode_array("gradient", submitted)
        observation = Observation(self.policy, words, self._replay(reference))
        return float(not self._rule.causes(self.boundary, observation))

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        """The mean over coordinates of max(|u - M| / allowed move - 1, 0)^2.

        Quantile tests limit how many coordinates exceed a bound, not which ones, so the attacker
        assigns the widest bounds to those that it wants to move most. At penalty 0 all tests pass.
        """
        replays = [self._real(each) for each in references]
        moves = [
            self.allowed_moves(each, rank).astype(np.float32)
            for each, rank in zip(references, wanted.double().numpy(), strict=True)
        ]
        centres, widths = (torch.from_numpy(np.stack(each)) for each in (replays, moves))
        # Keep the quotient finite where a bound is zero.
        widths.clamp_(min=float(self.policy.fixed_point.quantum))

        def penalty(submitted: torch.Tensor) -> torch.Tensor:
            beyond = torch.clamp((submitted - centres).abs() / widths - 1, min=0)
            return (beyond**2).mean(1)

        return penalty

    def allowed_moves(self, reference: Reference, wanted: Reals, part: float = 1.0) -> Reals:
        """Return how far each coordinate of a step may be moved."""
        headroom, gradient = self._replay(reference).headroom, self._real(reference)
        moves: Reals = self._rule.allowed_moves(
            self.boundary, self.policy, gradient, wanted, headroom, part
        )
        return moves

    def can_judge(self, reference: Reference) -> bool:
        return self.boundary.rule in reference.replays

    def farthest(self, reference: Reference) -> float:
        """Return an upper bound on the distance of accepted gradients from the honest one."""
        replay = self._replay(reference)
        real = self.policy.fixed_point.decode_words(replay.words)
        honest = reference.gradient.astype(np.float64)
        apart = float(np.linalg.norm(honest - real))
        return apart + self._rule.largest_distance(
            self.boundary, self.policy, real, replay.headroom
        )

    @property
    def _rule(self) -> AnyRule:
        return rule_of(self.boundary)

    def _real(self, reference: Reference) -> Vector:
        words = self._replay(reference).words
        return self.policy.fixed_point.decode_words(words).astype(np.float32)

    def _replay(self, reference: Reference) -> Replay:
        if not self.can_judge(reference):
            raise ReferenceMissing(f"OPFL, rule {self.boundary.rule},", "a replay in MPC")
        return reference.replays[self.boundary.rule]
