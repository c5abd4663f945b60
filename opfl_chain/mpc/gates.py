"""The gates of Algorithm 1, over a session with the other members.

One bit is opened per contribution: the conjunction of all that was checked. Nothing in between
leaves the shares.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.mpc.arithmetic import join
from opfl_chain.mpc.boolean import BooleanCircuit, Shared, Transport, Words
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.profile_check import is_inside
from opfl_chain.mpc.session import Session, SessionInput
from opfl_chain.mpc.shares import Share, arithmetic_share
from opfl_chain.mpc.tree_check import opens_tree
from opfl_chain.protocol.boundary import PaperBoundary, boundary_from_json
from opfl_chain.protocol.gradient import Subject

Held = tuple[Words, Words]
"""The two ring components of a secret vector that a member holds."""

PlainTree = list[Any]
"""Tag, commitment and the two components of an opening, as they go to another process."""

_EXAMPLES, _TARGETS, _GRADIENT = "examples", "targets", "gradient"


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
    trees: Sequence[TreeOpening] = ()
    """What is left to open inside MPC; nothing in scheme `shares`."""


def audit(
    session: Session,
    replay: Executable,
    weights: Mapping[str, NDArray[np.float32]],
    boundary: PaperBoundary,
    contributions: Sequence[Contribution],
) -> list[bool]:
    """Replay training steps and compare: gate 2, and gate 1 of what is committed as a tree.

    `replay` is compiled for as many contributions as there are. One bit is opened for each.
    """
    examples, targets = _input_shares(session, replay, contributions)
    inputs: dict[str, SessionInput] = {**weights, _EXAMPLES: examples, _TARGETS: targets}
    replayed = session.run(replay, inputs).outputs[_GRADIENT].components
    verdicts: list[bool] = session.call(
        decide,
        boundary=boundary.canonical_json,
        gradients=[list(contribution.gradient) for contribution in contributions],
        replays=[
            [np.ascontiguousarray(part[i]) for part in replayed] for i in range(len(contributions))
        ],
        trees=[[_plain(tree) for tree in contribution.trees] for contribution in contributions],
    )
    return verdicts


def opens(session: Session, tree: TreeOpening) -> bool:
    """Gate 1 in scheme `mpc`, for a contribution that is not audited."""
    return bool(session.call(decide_opening, tree=_plain(tree)))


def aggregate(session: Session, gradients: Sequence[Held]) -> Words:
    """Add up the accepted contributions and open their sum, which is exact."""
    own, following = (
        np.sum([held[part] for held in gradients], axis=0, dtype=np.uint64) for part in range(2)
    )
    share = arithmetic_share(session.rank, own, following)
    return session.open(share, fraction_bits=0).view(np.uint64)


def decide(
    transport: Transport,
    *,
    boundary: bytes,
    gradients: list[list[Words]],
    replays: list[list[Words]],
    trees: list[list[PlainTree]],
) -> list[bool]:
    """A procedure: the verdicts over gradients and their replays, opened."""
    circuit = BooleanCircuit(transport, secrets.token_bytes(32))
    rule = boundary_from_json(boundary)
    verdicts = []
    for gradient, replay, openings in zip(gradients, replays, trees, strict=True):
        verdict = is_inside(
            circuit,
            rule,
            (_words(gradient[0]), _words(gradient[1])),
            (_words(replay[0]), _words(replay[1])),
        )
        for tree in openings:
            verdict = circuit.conjunction(verdict, _opens(circuit, tree))
        verdicts.append(verdict)
    return [bool(bit == 1) for bit in circuit.open(join(*verdicts))]


def decide_opening(transport: Transport, *, tree: PlainTree) -> bool:
    """A procedure: whether a tree opens, opened."""
    circuit = BooleanCircuit(transport, secrets.token_bytes(32))
    return bool(circuit.open(_opens(circuit, tree))[0] == 1)


def _opens(circuit: BooleanCircuit, tree: PlainTree) -> Shared:
    tag, commitment, own, following = tree
    return opens_tree(circuit, tag, commitment, (_words(own), _words(following)))


def _plain(tree: TreeOpening) -> PlainTree:
    return [tree.subject.tag, tree.commitment, *tree.opening]


def _words(part: NDArray[Any]) -> Words:
    return np.ascontiguousarray(part).view(np.uint64)


def _input_shares(
    session: Session, replay: Executable, contributions: Sequence[Contribution]
) -> tuple[Share, Share]:
    """Cut the canonical encodings of training inputs into what the program takes."""
    shapes = {each.name: each.shape for each in replay.inputs}
    count = int(np.prod(shapes[_EXAMPLES][1:]))
    own, following = (
        np.stack([contribution.training_input[part] for contribution in contributions])
        for part in range(2)
    )
    parts = []
    for name, place in ((_EXAMPLES, slice(0, count)), (_TARGETS, slice(count, None))):
        first, second = (part[:, place].reshape(shapes[name]) for part in (own, following))
        parts.append(arithmetic_share(session.rank, first, second, dtype="float32"))
    return parts[0], parts[1]
