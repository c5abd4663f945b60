"""A member hands its successor the keys of what its seat held, and no more than a seat holds."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.handed_keys import decode_handed_keys
from opfl_chain.protocol.referee import MOST_COMPONENTS
from opfl_chain.protocol.sealing import derived_key
from opfl_chain.roles.member import newcomers
from opfl_chain.roles.member.newcomers import Newcomers
from opfl_chain.roles.member.store import SCHEMA, MemberStore
from opfl_chain.roles.state import State

OWN, SUCCESSOR, ALICE, BOB = (f"0x{digit * 40}" for digit in "1289")
OPENED, NOW = (OWN, "second", "third"), (SUCCESSOR, "second", "third")


@dataclass
class OpenedRound:
    id: int = 1
    number: int = 0
    epoch: int = 0
    opening: bytes = b"\1" * 32


def predecessor(store, answers, peers=None):
    """A member that had the first seat when the round opened, and lost it."""
    view = SimpleNamespace(
        seats=lambda: NOW,
        epoch=1,
        round=lambda number: OpenedRound(number=number),
        seats_of=lambda round_: NOW if round_.epoch else OPENED,
        clients=lambda: {ALICE: SimpleNamespace(index=0)},
    )
    job = SimpleNamespace(boundary=None)
    node = SimpleNamespace(address=OWN, view=view, peers=peers, job=job)
    return Newcomers(node, store, derived_key(b"\2" * 32), {BundleKind.ANSWER: answers})


def test_predecessor_asks_for_the_answer_of_each_client() -> None:
    asked: list[tuple[list[str], list[str]]] = []
    answers = SimpleNamespace(
        collect=lambda round_, clients, members: asked.append((list(clients), members)),
        hashes=lambda round_: {},
    )
    store = SimpleNamespace(roll=lambda opening: [])
    predecessor(store, answers).hand_over_seat(OpenedRound(), [ALICE, BOB])
    assert asked == [([ALICE], list(NOW)), ([BOB], list(NOW))]


@pytest.mark.parametrize(("seen", "handed"), [([], {0, 1}), ([0, 1], {0, 1}), ([1, 2], {1})])
def test_successor_that_was_the_referee_is_handed_no_third_component(
    tmp_path, monkeypatch, seen, handed
):
    state = State(tmp_path / "state.sqlite", "a member", SCHEMA)
    store, opening, sent = MemberStore(state), OpenedRound().opening, []
    for component in seen:
        assert store.may_show(opening, SUCCESSOR, ALICE, component, MOST_COMPONENTS)
    monkeypatch.setattr(newcomers, "body_key", lambda *_: b"\3" * 32)
    proved = SimpleNamespace(tolerance=lambda boundary: 1)
    monkeypatch.setattr(newcomers, "rule_of", lambda boundary: proved)
    answers = SimpleNamespace(required=lambda *_: None, context=lambda *_: b"")
    peers = SimpleNamespace(post_to_member=lambda *given, patient: sent.append(given))
    heard = OpenedRound(epoch=1)
    own = predecessor(store, answers, peers)
    own.hand_over(heard, BundleKind.ANSWER, ALICE, b"\4" * 32)
    assert {key.component for _, _, body, _ in sent for key in decode_handed_keys(body)} == handed
    state.close()
