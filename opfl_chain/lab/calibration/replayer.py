"""Batched replays of steps that each have their own weights.

An audit replays contributions of one round, which share their weights. The steps of a calibration
do not. The arithmetic per step is the same, and a batch of eight takes half the time or less,
because its steps share the waits for messages.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import jax
import numpy as np

from opfl_chain.circuits.arithmetic import Held
from opfl_chain.lab.calibration.steps import HonestStep
from opfl_chain.mpc.audit.contribution import Contribution, replay_inputs
from opfl_chain.mpc.local import Committee
from opfl_chain.mpc.replay.arrays import ARGUMENTS, GRADIENT, PRE_ACTIVATIONS, TOTALS
from opfl_chain.mpc.replay.compiler import ExecutableCache
from opfl_chain.mpc.replay.programs import Program
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.mpc.session.executable import Executable, Visibility
from opfl_chain.mpc.session.session import Session
from opfl_chain.mpc.session.shares import Share, arithmetic_share
from opfl_chain.protocol.advice import Advice, advise
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.shares import SharedVector
from opfl_chain.rules.evidence import Replayed

WIDTH = 8
"""Steps per batch; a batch twice as large is no faster per step."""
_NONE: Held = (np.zeros(0, np.uint64), np.zeros(0, np.uint64))


class StepReplays(Replays):
    """Replays whose `executable` takes `width` steps at once."""

    def __init__(
        self, policy: Policy, width: int = 1, cache: ExecutableCache | None = None
    ) -> None:
        super().__init__(policy, cache)
        self.width = width

    @property
    def executable(self) -> Executable:
        return self(self.width)

    def _program(self, contributions: int) -> Program:
        return at_own_weights(super()._program(1), contributions)


def at_own_weights(program: Program, steps: int) -> Program:
    """Turn a replay of one contribution into one of several steps, on a new leading axis."""
    public = {each.name for each in program.inputs if each.visibility is Visibility.PUBLIC}

    def of_one(arrays: dict[str, Any]) -> dict[str, Any]:
        inputs = {name: a if name in public else a[None] for name, a in arrays.items()}
        return {name: found[0] for name, found in program.function(inputs).items()}

    def function(arrays: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = jax.vmap(of_one)(arrays)
        return found

    inputs = (
        replace(each, shape=(steps, *(each.shape if each.name in public else each.shape[1:])))
        for each in program.inputs
    )
    return Program(f"{program.name}, {steps} steps", function, tuple(inputs))


class Replayer:
    """Replays steps of one policy with a committee, `replays.width` at a time."""

    def __init__(
        self, committee: Committee, policy: Policy, replays: StepReplays | None = None
    ) -> None:
        self.policy = policy
        self._committee = committee
        self._replays = replays or StepReplays(policy)
        self._replay = self._replays.executable

    def replay(self, step: HonestStep) -> Replayed:
        return next(self.replay_all([step]))

    def replay_all(self, steps: Iterable[HonestStep]) -> Iterator[Replayed]:
        """Replay steps in order. The last batch is padded, so that one executable serves all."""
        remaining = iter(steps)
        while taken := list(islice(remaining, self._replays.width)):
            filled = [*taken, *taken[-1:] * (self._replays.width - len(taken))]
            yield from self._together(filled)[: len(taken)]

    def _together(self, steps: Sequence[HonestStep]) -> list[Replayed]:
        """Share the steps' inputs and advice, replay them, and open the outputs."""
        form, layout = self.policy.input_format, self._replays.model.layout
        inputs = [shared(form.encode(step.examples, step.labels)) for step in steps]
        advice = [self.advice_on(step) for step in steps]
        advised = [self._shared_advice(each) for each in advice]
        each_weights = [layout.unflatten(step.weights) for step in steps]
        weights = {name: np.stack([each[name] for each in each_weights]) for name in layout.names}

        def member(session: Session) -> dict[str, Words]:
            contributions = [
                Contribution(
                    _NONE, held(given, session.rank), held(told, session.rank) if told else None
                )
                for given, told in zip(inputs, advised, strict=True)
            ]
            secret = replay_inputs(
                session.rank, self._replay, form, self._replays.advice_format, contributions
            )
            outputs = session.run(self._replay, {**weights, **secret}).outputs
            opened = session.open_all([_as_words(each) for each in outputs.values()], 0)
            return dict(zip(outputs, map(np.asarray, opened), strict=True))

        opened = self._committee.each(member)[0]
        replayed = []
        for place, (step, told) in enumerate(zip(steps, advice, strict=True)):
            outputs = {name: array[place] for name, array in opened.items()}
            replayed.append(
                self._guided(step, told, outputs) if told else Replayed(outputs[GRADIENT])
            )
        return replayed

    def advice_on(self, step: HonestStep) -> Advice | None:
        if self._replays.advice_format is None:
            return None
        masks = step.pre_activations > 0
        return advise(masks, step.logits, step.labels, self.policy.largest_lift)

    def _shared_advice(self, advice: Advice | None) -> SharedVector | None:
        form = self._replays.advice_format
        return shared(form.encode(advice)) if form and advice else None

    def _guided(self, step: HonestStep, advice: Advice, outputs: dict[str, Words]) -> Replayed:
        one = 1 << self.policy.fraction_bits
        values = outputs[PRE_ACTIVATIONS]
        told = np.rint(step.pre_activations.astype(np.float64) * one).astype(np.int64)
        wrong = np.where(advice.masks, -values, values)
        over = max(int(outputs[ARGUMENTS].max()), one - int(outputs[TOTALS].min()))
        return Replayed(
            outputs[GRADIENT],
            advice.lift,
            wrong_side=max(int(wrong.max()), 0),
            activation_error=int(np.abs(values - told).max()),
            over_ceiling=max(over, 0),
        )


def shared(words: Words) -> SharedVector:
    """Share words with fresh randomness."""
    return SharedVector.split(words, secrets.token_bytes(32), secrets.token_bytes(32))


def held(vector: SharedVector, rank: int) -> Held:
    """Return the two components of a member, as the words of a circuit."""
    own, following = (np.asarray(part).view(np.uint64) for part in vector.held_by(rank))
    return own, following


def _as_words(share: Share) -> Share:
    """Reinterpret a share as integers, to open the ring words without rounding."""
    return arithmetic_share(share.rank, *share.components, "int64")
