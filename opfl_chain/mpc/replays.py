"""The executables that a policy's steps are replayed with."""

from __future__ import annotations

from opfl_chain.models.advice import advice_format_of
from opfl_chain.models.registry import model_named
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.executable_cache import ExecutableCache
from opfl_chain.mpc.guided_replay import guided_replay_program
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.program import Program
from opfl_chain.mpc.replay import replay_program
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.policy import GuidedReplay, Policy


class Replays:
    """`replays(n)` replays n contributions side by side. Compiled when first asked for."""

    def __init__(self, policy: Policy, cache: ExecutableCache | None = None) -> None:
        self.policy = policy
        self.model = model_named(policy.model.name)
        self._cache = cache or ExecutableCache()
        self._options = MpcOptions.of_policy(policy)
        self._compiled: dict[int, Executable] = {}

    def __call__(self, contributions: int) -> Executable:
        if contributions not in self._compiled:
            program = self._program(contributions)
            self._compiled[contributions] = self._cache.compile(program, self._options)
        return self._compiled[contributions]

    @property
    def advice_format(self) -> AdviceFormat | None:
        return advice_format_of(self.policy)

    def _program(self, contributions: int) -> Program:
        batch, scale = self.policy.data.batch_size, float(self.policy.replay_scale)
        if isinstance(self.policy.replay, GuidedReplay):
            lift = self.policy.replay.largest_lift
            return guided_replay_program(self.model, batch, scale, lift, contributions)
        return replay_program(self.model, batch, scale, contributions)
