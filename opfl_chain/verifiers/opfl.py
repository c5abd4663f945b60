"""OPFL: a submitted gradient is compared with the replay of its step, by the rule of a boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from opfl_chain.protocol.guided import GuidedBoundary, check_guided_replay
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.profile import check_replay
from opfl_chain.protocol.rules import Boundary
from opfl_chain.verifiers.errors import BoundaryOfAnotherPolicy, ReferenceMissing
from opfl_chain.verifiers.room import Reals, reach, room
from opfl_chain.verifiers.verifier import Penalty, Reference, Replay, Vector


@dataclass(frozen=True)
class Opfl:
    """Of either rule: the boundary says which."""

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
        """By the reference that circuits agree with to the bit."""
        replay = self._replay(reference)
        words = self.policy.fixed_point.encode_array("gradient", submitted)
        boundary = self.boundary
        if isinstance(boundary, GuidedBoundary):
            advised = (
                replay.wrong_side <= boundary.mask_tolerance
                and replay.over_ceiling <= boundary.ceiling_tolerance
            )
            report = check_guided_replay(boundary, words, replay.words, replay.headroom)
            return float(advised and report.passed)
        return float(check_replay(boundary, words, replay.words).passed)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        """The mean over coordinates of max(|u - M| / room - 1, 0)^2.

        Quantile tests bind how many coordinates are beyond a bound and not which, so the attacker
        gives the widest to those that it wants to move most. Where the penalty is 0 all tests pass.
        """
        replays = [self._real(each) for each in references]
        rooms = [
            self.room_in(each, rank).astype(np.float32)
            for each, rank in zip(references, wanted.double().numpy(), strict=True)
        ]
        centres, widths = (torch.from_numpy(np.stack(each)) for each in (replays, rooms))
        # A bound of zero allows nothing, and a quotient must stay finite.
        widths.clamp_(min=float(self.policy.fixed_point.quantum))

        def penalty(submitted: torch.Tensor) -> torch.Tensor:
            beyond = torch.clamp((submitted - centres).abs() / widths - 1, min=0)
            return (beyond**2).mean(1)

        return penalty

    def room_in(self, reference: Reference, wanted: Reals, part: float = 1.0) -> Reals:
        """How far each coordinate of a step may be moved."""
        replay = self._replay(reference)
        gradient = self._real(reference)
        return room(self.boundary, self.policy, gradient, wanted, replay.headroom, part)

    def farthest(self, reference: Reference) -> float:
        """No gradient that is accepted is farther than this from the honest one."""
        replay = self._replay(reference)
        real = self.policy.fixed_point.decode_words(replay.words)
        honest = reference.gradient.astype(np.float64)
        apart = float(np.linalg.norm(honest - real))
        return apart + reach(self.boundary, self.policy, real, replay.headroom)

    def _real(self, reference: Reference) -> Vector:
        words = self._replay(reference).words
        return self.policy.fixed_point.decode_words(words).astype(np.float32)

    def _replay(self, reference: Reference) -> Replay:
        if self.boundary.rule not in reference.replays:
            raise ReferenceMissing(f"OPFL, rule {self.boundary.rule},", "a replay in MPC")
        return reference.replays[self.boundary.rule]
