"""Replays of honest steps in MPC, opened: calibration is on public data."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from opfl_chain.calibration.side_by_side import StepReplays
from opfl_chain.calibration.steps import HonestStep
from opfl_chain.mpc.arithmetic import Held
from opfl_chain.mpc.committee import Committee
from opfl_chain.mpc.gates import Contribution, replay_inputs
from opfl_chain.mpc.replay_names import ARGUMENTS, GRADIENT, PRE_ACTIVATIONS, TOTALS
from opfl_chain.mpc.session import Session
from opfl_chain.mpc.shares import Share, arithmetic_share
from opfl_chain.protocol.advice import Advice, advise
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.ring_shares import SharedVector

Words = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Replayed:
    """What a replay computed of a step, as ring words of the replay's own scale."""

    gradient: Words
    lift: int = 0
    wrong_side: int = 0
    """How far a value was on the other side of its ReLU than its mask says, in quanta, at most."""
    activation_error: int = 0
    """How far values that go into ReLUs were from the client's, in quanta, at most."""
    over_ceiling: int = 0
    """How far a logit was above its ceiling, or a sum of exponentials below one, at most."""


class Replayer:
    """Replays steps of one policy with a committee, as many at once as `replays` is wide."""

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
        """Replay steps in order. The last ones are filled up, so that one executable serves all."""
        remaining = iter(steps)
        while taken := list(islice(remaining, self._replays.width)):
            filled = [*taken, *taken[-1:] * (self._replays.width - len(taken))]
            yield from self._together(filled)[: len(taken)]

    def _together(self, steps: Sequence[HonestStep]) -> list[Replayed]:
        """Share the steps' inputs and advice, replay them, and open what came out."""
        form, layout = self.policy.input_format, self._replays.model.layout
        inputs = [_shared(form.encode(step.examples, step.labels)) for step in steps]
        advice = [self.advice_on(step) for step in steps]
        advised = [self._shared_advice(each) for each in advice]
        each_weights = [layout.unflatten(step.weights) for step in steps]
        weights = {name: np.stack([each[name] for each in each_weights]) for name in layout.names}

        def member(session: Session) -> dict[str, Words]:
            contributions = [
                Contribution(
                    _NONE, _held(given, session.rank), _held(told, session.rank) if told else None
                )
                for given, told in zip(inputs, advised, strict=True)
            ]
            secret = replay_inputs(session.rank, self._replay, form, contributions)
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
        return _shared(form.encode(advice)) if form and advice else None

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


_NONE: Held = (np.zeros(0, np.uint64), np.zeros(0, np.uint64))


def _shared(words: Words) -> SharedVector:
    return SharedVector.split(words, secrets.token_bytes(32), secrets.token_bytes(32))


def _held(vector: SharedVector, rank: int) -> Held:
    own, following = (np.asarray(part).view(np.uint64) for part in vector.held_by(rank))
    return own, following


def _as_words(share: Share) -> Share:
    """The same secret read as integers: opened as it is in the ring, without rounding."""
    return arithmetic_share(share.rank, *share.components, "int64")
