"""One member's part of an audited contribution: into the replay, and out of it as evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opfl_chain.circuits.arithmetic import Held
from opfl_chain.circuits.boolean import Words
from opfl_chain.mpc.replay.arrays import CEILINGS, EXAMPLES, LIFTS, MASKS, TARGETS
from opfl_chain.mpc.session.executable import Executable
from opfl_chain.mpc.session.ranks import Rank
from opfl_chain.mpc.session.session import SessionInput
from opfl_chain.mpc.session.shares import Share, arithmetic_share
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.commitments import Subject
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.rules.evidence import Evidence, ReplayOutputs


@dataclass(frozen=True)
class TreeOpening:
    """A commitment of scheme `mpc`, and this member's components of the words and the salt."""

    subject: Subject
    commitment: bytes
    opening: Held


@dataclass(frozen=True)
class Contribution:
    """A member's part of an audited contribution. Openings outside MPC are already checked."""

    gradient: Held
    training_input: Held
    advice: Held | None = None
    """Set if the replay is guided."""
    trees: Sequence[TreeOpening] = ()
    """Commitments to open inside MPC; none in scheme `shares`."""

    def evidence(self, outputs: Mapping[str, Share], place: int) -> Evidence:
        """Return the evidence for the verdict, with the outputs of a replay at `place`."""
        replayed = {name: _held(share, place) for name, share in outputs.items()}
        return Evidence(self.gradient, self.training_input, self.advice, ReplayOutputs(**replayed))


def replay_inputs(
    rank: Rank,
    replay: Executable,
    input_format: InputFormat,
    advice_format: AdviceFormat | None,
    contributions: Sequence[Contribution],
) -> dict[str, SessionInput]:
    """Split the canonical encodings of inputs and advice into the program's secret inputs."""
    features = input_format.feature_words
    inputs = [contribution.training_input for contribution in contributions]
    parts = {
        EXAMPLES: _part(inputs, slice(0, features), "float32"),
        TARGETS: _part(inputs, slice(features, None), "float32"),
    }
    if advice_format:
        advice = [contribution.advice for contribution in contributions if contribution.advice]
        if len(advice) != len(contributions):
            raise ValueError("a guided replay needs the advice of every contribution")
        parts |= {
            MASKS: _part(advice, advice_format.masks, "int32"),
            LIFTS: _part(advice, advice_format.lifts, "int32"),
            CEILINGS: _part(advice, advice_format.ceilings, "float32"),
        }
    shapes = {each.name: each.shape for each in replay.inputs}
    return {
        name: arithmetic_share(
            rank, own.reshape(shapes[name]), following.reshape(shapes[name]), dtype
        )
        for name, (own, following, dtype) in parts.items()
    }


def _part(vectors: Sequence[Held], place: slice, dtype: str) -> tuple[Words, Words, str]:
    """Return both components of a part of every vector, stacked, and the type they encode."""
    own, following = (
        np.stack([vector[component][place] for vector in vectors]) for component in range(2)
    )
    return own, following, dtype


def _held(share: Share, place: int) -> Held:
    own, following = (np.ascontiguousarray(part[place]) for part in share.components)
    return own, following
