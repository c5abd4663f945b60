"""The gates of Algorithm 1, over a session with the other members.

One bit is opened per contribution: the conjunction of all that was checked. Nothing in between
leaves the shares.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.mpc.advice_check import FollowedAdvice, advice_faults
from opfl_chain.mpc.arithmetic import Held, add_public, any_bit, join
from opfl_chain.mpc.boolean import BooleanCircuit, Shared, Transport
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.input_check import InputRules, input_faults
from opfl_chain.mpc.profile_check import profile_faults
from opfl_chain.mpc.replay_names import (
    ARGUMENTS,
    CEILINGS,
    EXAMPLES,
    GRADIENT,
    LIFTS,
    MASKS,
    PRE_ACTIVATIONS,
    TARGETS,
    TOTALS,
)
from opfl_chain.mpc.scaled_check import scaled_faults
from opfl_chain.mpc.session import Session, SessionInput
from opfl_chain.mpc.shares import Share, arithmetic_share
from opfl_chain.mpc.tree_check import tree_faults
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.boundary import PaperBoundary
from opfl_chain.protocol.gradient import Subject
from opfl_chain.protocol.guided import GuidedBoundary
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.rules import Boundary, boundary_from_json

PlainTree = list[Any]
"""Tag, commitment and the two components of an opening, as they go to another process."""

Evidence = dict[str, list[Any]]
"""What a verdict is made of, by name, as it goes to another process."""

_INPUT, _REPLAY, _ADVICE, _TREES = "input", "replay", "advice", "trees"


@dataclass(frozen=True)
class TreeOpening:
    """A commitment of scheme `mpc`, and this member's components of the words and the salt."""

    subject: Subject
    commitment: bytes
    opening: Held


@dataclass(frozen=True)
class Contribution:
    """What a member holds of an audited contribution, its openings outside MPC already checked."""

    gradient: Held
    training_input: Held
    advice: Held | None = None
    """Where the replay is guided."""
    trees: Sequence[TreeOpening] = ()
    """What is left to open inside MPC; nothing in scheme `shares`."""


def audit(
    session: Session,
    replay: Executable,
    weights: Mapping[str, NDArray[np.float32]],
    boundary: Boundary,
    form: InputFormat,
    contributions: Sequence[Contribution],
) -> list[bool]:
    """Replay training steps and compare: gate 2, and gate 1 of what is committed as a tree.

    `replay` is compiled for as many contributions as there are, and guided if the boundary is. One
    bit is opened for each.
    """
    advice_form = advice_format_of(replay, form)
    inputs = {**weights, **replay_inputs(session.rank, replay, form, contributions)}
    outputs = session.run(replay, inputs).outputs
    verdicts: list[bool] = session.call(
        decide,
        boundary=boundary.canonical_json,
        input_rules=list(astuple(InputRules.of(form))),
        advice_form=list(astuple(advice_form)) if advice_form else [],
        evidence=[
            evidence_of(contribution, outputs, place)
            for place, contribution in enumerate(contributions)
        ],
    )
    return verdicts


def open_trees(session: Session, trees: Sequence[TreeOpening]) -> list[bool]:
    """Gate 1 in scheme `mpc`, for contributions that are not audited."""
    opened: list[bool] = session.call(decide_openings, trees=[_plain(tree) for tree in trees])
    return opened


def decide(
    transport: Transport,
    *,
    boundary: bytes,
    input_rules: list[int],
    advice_form: list[int],
    evidence: list[Evidence],
) -> list[bool]:
    """A procedure: the verdicts over gradients and their replays, opened."""
    circuit = BooleanCircuit(transport, secrets.token_bytes(32))
    rule, rules = boundary_from_json(boundary), InputRules(*input_rules)
    faults = []
    for contribution in evidence:
        if isinstance(rule, GuidedBoundary):
            form = AdviceFormat(*advice_form)
            replay = _guided_faults(circuit, rule, form, rules.feature_words, contribution)
        else:
            replay = _plain_faults(circuit, rule, contribution)
        faults.append(
            join(
                replay,
                input_faults(circuit, rules, _held(contribution[_INPUT])),
                *(_tree_faults(circuit, tree) for tree in contribution[_TREES]),
            )
        )
    return _without_fault(circuit, faults)


def decide_openings(transport: Transport, *, trees: list[PlainTree]) -> list[bool]:
    """A procedure: whether each tree opens, opened."""
    circuit = BooleanCircuit(transport, secrets.token_bytes(32))
    return _without_fault(circuit, [_tree_faults(circuit, tree) for tree in trees])


def _without_fault(circuit: BooleanCircuit, faults: Sequence[Shared]) -> list[bool]:
    """Open one bit for each: whether all of its words are zero."""
    found = join(*(any_bit(circuit, words) for words in faults))
    return [bool(bit == 0) for bit in circuit.open(found)]


def _plain_faults(circuit: BooleanCircuit, rule: PaperBoundary, evidence: Evidence) -> Shared:
    return profile_faults(circuit, rule, _held(evidence[GRADIENT]), _held(evidence[_REPLAY]))


def _guided_faults(
    circuit: BooleanCircuit,
    rule: GuidedBoundary,
    form: AdviceFormat,
    features: int,
    evidence: Evidence,
) -> Shared:
    """Bring the replay to the scale of the commitment, by the power of two that was not lifted.

    Where there is nothing to learn the factor is zero, and so is the replay.
    """
    advice = _held(evidence[_ADVICE])
    unused = np.arange(form.largest_lift, -1, -1, dtype=np.uint64)
    powers = np.append(np.uint64(1) << unused, np.uint64(0))
    own, following = (np.sum(part[form.lifts] * powers, keepdims=True) for part in advice)
    replay = circuit.product(Shared(*_held(evidence[_REPLAY])), Shared(own, following))
    own_input, following_input = _held(evidence[_INPUT])
    followed = FollowedAdvice(
        advice,
        _held(evidence[PRE_ACTIVATIONS]),
        _held(evidence[ARGUMENTS]),
        _held(evidence[TOTALS]),
        (own_input[features:], following_input[features:]),
    )
    return join(
        scaled_faults(
            circuit,
            rule,
            _held(evidence[GRADIENT]),
            (replay.own, replay.following),
            add_public(circuit.rank, (own, following), -1),
        ),
        advice_faults(circuit, form, followed, rule.mask_tolerance, rule.ceiling_tolerance),
    )


def _tree_faults(circuit: BooleanCircuit, tree: PlainTree) -> Shared:
    tag, commitment, *opening = tree
    return tree_faults(circuit, tag, commitment, _held(opening))


def _plain(tree: TreeOpening) -> PlainTree:
    return [tree.subject.tag, tree.commitment, *tree.opening]


def _held(parts: Sequence[NDArray[Any]]) -> Held:
    own, following = (np.ascontiguousarray(part).view(np.uint64) for part in parts)
    return own, following


def evidence_of(contribution: Contribution, outputs: Mapping[str, Share], place: int) -> Evidence:
    """Put together what one contribution's verdict is made of."""
    replayed = {
        name: [np.ascontiguousarray(part[place]) for part in share.components]
        for name, share in outputs.items()
    }
    return {
        GRADIENT: list(contribution.gradient),
        _REPLAY: replayed.pop(GRADIENT),
        _INPUT: list(contribution.training_input),
        _ADVICE: list(contribution.advice or ()),
        _TREES: [_plain(tree) for tree in contribution.trees],
        **replayed,
    }


def advice_format_of(replay: Executable, form: InputFormat) -> AdviceFormat | None:
    """What advice a replay takes, if it is guided."""
    shapes = {each.name: each.shape for each in replay.inputs}
    if MASKS not in shapes:
        return None
    (_, units), (_, lifts) = shapes[MASKS], shapes[LIFTS]
    return AdviceFormat(units, lifts - 2, form.feature_shape[0], form.fraction_bits)


def replay_inputs(
    rank: int, replay: Executable, form: InputFormat, contributions: Sequence[Contribution]
) -> dict[str, SessionInput]:
    """Cut the canonical encodings of inputs and advice into what the program takes."""
    features = slice(0, form.feature_words)
    parts = [(EXAMPLES, features, "float32"), (TARGETS, slice(features.stop, None), "float32")]
    inputs = [contribution.training_input for contribution in contributions]
    cut = _cut(rank, replay, inputs, parts)
    if advice_form := advice_format_of(replay, form):
        advice = [contribution.advice for contribution in contributions]
        if any(each is None for each in advice):
            raise ValueError("a guided replay needs the advice of every contribution")
        parts = [
            (MASKS, advice_form.masks, "int32"),
            (LIFTS, advice_form.lifts, "int32"),
            (CEILINGS, advice_form.ceilings, "float32"),
        ]
        cut |= _cut(rank, replay, [each for each in advice if each], parts)
    return cut


def _cut(
    rank: int, replay: Executable, vectors: Sequence[Held], parts: Sequence[tuple[str, slice, str]]
) -> dict[str, SessionInput]:
    shapes = {each.name: each.shape for each in replay.inputs}
    own, following = (np.stack([vector[part] for vector in vectors]) for part in range(2))
    return {
        name: arithmetic_share(
            rank,
            own[:, place].reshape(shapes[name]),
            following[:, place].reshape(shapes[name]),
            dtype,
        )
        for name, place, dtype in parts
    }
