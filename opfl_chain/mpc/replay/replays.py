"""The executables that replay a policy's training steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from opfl_chain.learning.model import Model
from opfl_chain.learning.registry import advice_format_of, model_of
from opfl_chain.mpc.replay.compiler import ExecutableCache
from opfl_chain.mpc.replay.programs import Program, guided_replay_program, replay_program
from opfl_chain.mpc.session.executable import Executable, MpcOptions
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.policy import Policy

ProgramMaker = Callable[[Model, Policy, int], Program]


def _plain(model: Model, policy: Policy, contributions: int) -> Program:
    batch, scale = policy.data.batch_size, float(policy.replay_scale)
    return replay_program(model, batch, scale, contributions)


def _guided(model: Model, policy: Policy, contributions: int) -> Program:
    batch, scale = policy.data.batch_size, float(policy.replay_scale)
    return guided_replay_program(model, batch, scale, policy.largest_lift, contributions)


PROGRAMS: Final[Mapping[str, ProgramMaker]] = {"plain": _plain, "guided": _guided}
"""Makers of a replay for a number of contributions, by the kind that the policy names."""


WARM_SIZES: Final = (1, 2, 4)
"""Usual numbers of contributions in an audit: compiled before the first round."""


class Replays:
    """`replays(n)` is the executable for n contributions side by side, compiled on first use."""

    def __init__(self, policy: Policy, cache: ExecutableCache | None = None) -> None:
        self.policy = policy
        self.model = model_of(policy)
        self._cache = cache or ExecutableCache()
        self._options = MpcOptions.of_policy(policy)
        self._compiled: dict[int, Executable] = {}

    def __call__(self, contributions: int) -> Executable:
        if contributions not in self._compiled:
            program = self._program(contributions)
            self._compiled[contributions] = self._cache.compile(program, self._options)
        return self._compiled[contributions]

    def warm(self) -> None:
        """Compile the replays that most rounds need: none if clients prove their steps."""
        if self.policy.proof is None:
            for size in WARM_SIZES:
                self(size)

    @property
    def advice_format(self) -> AdviceFormat | None:
        return advice_format_of(self.policy)

    def _program(self, contributions: int) -> Program:
        return PROGRAMS[self.policy.replay.kind](self.model, self.policy, contributions)
