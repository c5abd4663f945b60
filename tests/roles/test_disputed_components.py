"""A member hands over a component on which its two holders differ, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from opfl_chain.protocol.exchange import Answers, Report, ReportRow, encode_revealed
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.shares import held_indices
from opfl_chain.roles.hand_over import HandOverRefused, require_dispute
from opfl_chain.roles.member.store import SCHEMA, MemberStore
from opfl_chain.roles.state import State

ROUND, LIAR, PLACE = 4, 2, 1
OTHERS, LEAVES = b"\1" * 32, b"\2" * 32
RIGHT = [Answer(index, 1, index, 0) for index in range(3)]
WRONG = [replace(answer, rest=1) for answer in RIGHT]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemberStore]:
    state = State(tmp_path / "state.sqlite", "member", SCHEMA)
    yield MemberStore(state)
    state.close()


def component(index: int, leaves: bytes = LEAVES) -> Any:
    return SimpleNamespace(round_number=ROUND, client=7, component=index, digest=leaves)


def exchange(store: MemberStore, liar: int | None) -> None:
    """Store the messages of an exchange on two contributions, of which the second is audited."""
    given = {
        rank: Answers(rank, bytes(32), *((WRONG if rank == liar else RIGHT)[j] for j in held))
        for rank in range(3)
        for held in [held_indices(rank)]
    }
    rows = {
        rank: (ReportRow(None, OTHERS), ReportRow(None, LEAVES, each.commitment))
        for rank, each in given.items()
    }
    reports = [Report(rank, bytes(32), rows[rank]).encode() for rank in range(3)]
    for rank, each in given.items():
        store.keep_audit_message(ROUND, rank, "report", reports[rank], b"")
        revealed = encode_revealed(rank, reports, {PLACE: each})
        store.keep_audit_message(ROUND, rank, "answers", revealed, b"")


def test_what_the_liar_holds_is_disputed_and_nothing_else(store: MemberStore) -> None:
    exchange(store, LIAR)
    for index in held_indices(LIAR):
        require_dispute(store, component(index))
    with pytest.raises(HandOverRefused, match="members 0 and 1 do not differ on component 1"):
        require_dispute(store, component(1))


@pytest.mark.parametrize("index", range(3))
def test_nothing_is_disputed_where_all_agree(store: MemberStore, index: int) -> None:
    exchange(store, None)
    with pytest.raises(HandOverRefused, match="nothing is disputed"):
        require_dispute(store, component(index))


@pytest.mark.parametrize("index", range(3))
def test_a_contribution_without_answers_is_not_disputed(store: MemberStore, index: int) -> None:
    with pytest.raises(HandOverRefused, match="nothing is disputed"):
        require_dispute(store, component(index))
    exchange(store, LIAR)
    for leaves in (OTHERS, b"\3" * 32):
        with pytest.raises(HandOverRefused, match="nothing is disputed"):
            require_dispute(store, component(index, leaves))


@pytest.mark.parametrize("body", [b"", b"short", b"\0" * 600])
def test_messages_that_cannot_be_read_dispute_nothing(store: MemberStore, body: bytes) -> None:
    for rank in range(3):
        for stage in ("report", "answers"):
            store.keep_audit_message(ROUND, rank, stage, body, b"")
    with pytest.raises(HandOverRefused, match="nothing is disputed"):
        require_dispute(store, component(0))
