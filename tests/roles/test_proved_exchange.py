"""A member's exchange on proved steps: stored, repeated, and begun anew after a reorganisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opfl_chain.protocol.exchange import (
    Answers,
    Report,
    ReportRow,
    contradict,
    encode_revealed,
    stated_subject,
)
from opfl_chain.roles.member.audit_messages import SignedMessage

from opfl_chain.learning.registry import model_of
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.proof.closing import Tolerance
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.roles.member.proved_audits import ProvedAudits
from opfl_chain.roles.member.store import SCHEMA, MemberStore
from opfl_chain.roles.state import State

CLAIMS = [Claim(ClientIndex(0), RoundNumber(4), b"\1" * 32, b"\2" * 32, audited=True)]
BEFORE, AFTER = b"\3" * 32, b"\4" * 32
ROUND: Any = SimpleNamespace(number=RoundNumber(4), id=4, model_hash=bytes(32))
PEER = "0x" + "1" * 40
PEERS = [f"0x{rank:040x}" for rank in range(3)]


class Counting(ProvedAudits):
    """Counts how often it examines a round."""

    examined = 0

    def examine(
        self, round_: Any, claims: Sequence[Claim]
    ) -> tuple[list[ReportRow], dict[int, Answers]]:
        del round_
        self.examined += 1
        answers = Answers(self.rank, b"\5" * 32, Answer(1, 2, 2, 0), Answer(3, 4, 12, 0))
        return [ReportRow(None, b"\6" * 32, answers.commitment) for _ in claims], {0: answers}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemberStore]:
    state = State(tmp_path / "state.sqlite", "member", SCHEMA)
    yield MemberStore(state)
    state.close()


def audits(store: MemberStore) -> Counting:
    node: Any = SimpleNamespace(
        job=SimpleNamespace(id=1, members=PEERS),
        agenda=SimpleNamespace(again=lambda: None),
        sign=lambda statement: b"\7" * 65,
    )
    unused: Any = None
    return Counting(node, 1, store, unused, unused, Tolerance(1, 1))


def test_a_report_is_made_once_and_repeated_by_a_restarted_member(store: MemberStore) -> None:
    first = audits(store)
    told = first.report(ROUND, CLAIMS, BEFORE)
    again = audits(store)
    assert again.report(ROUND, CLAIMS, BEFORE) == told
    assert (first.examined, again.examined) == (1, 0)


@pytest.mark.parametrize("weight", [2000.0, 1e30])
def test_weights_that_no_statement_can_hold_do_not_end_the_member(
    store: MemberStore, weight: float
) -> None:
    policy = default_policy("lenet-61706", rule="proved")
    large = {each.name: np.full(each.shape, weight, np.float32) for each in model_of(policy).layout}
    node: Any = SimpleNamespace(job=SimpleNamespace(id=1, policy=policy))
    claims: Any = SimpleNamespace(of=lambda round_: dict(enumerate(CLAIMS)))
    judging: Any = SimpleNamespace(weights=lambda round_: large, rules=None)
    own = Counting(node, 1, store, claims, judging, Tolerance(1 << 22, 1 << 20))
    own.judge(ROUND)
    (dispute,) = own.health["disputes"]
    assert dispute["members"] == []
    assert dispute["reason"].startswith("nobody can be audited at these weights: ")
    assert own.messages.own(ROUND, "report") is None


def test_answers_are_revealed_once_and_repeated(store: MemberStore) -> None:
    own = audits(store)
    heard = [own.report(ROUND, CLAIMS, BEFORE).body] * 3
    told = own.reveal(ROUND, heard, [0])
    assert audits(store).reveal(ROUND, [b"", b"", b""], []) == told


def test_an_exchange_begins_anew_when_a_reorganisation_changed_its_subject(
    store: MemberStore,
) -> None:
    own = audits(store)
    heard = [own.report(ROUND, CLAIMS, BEFORE).body] * 3
    own.reveal(ROUND, heard, [0])
    store.keep_audit_message(4, 0, "report", b"of a peer", b"")
    store.keep_told(4, PEER, "report")
    told = own.report(ROUND, CLAIMS, AFTER)
    assert stated_subject(told.body) == (AFTER, 1)
    assert own.examined == 2
    assert store.audit_message(4, 0, "report") is None
    assert store.audit_message(4, 1, "answers") is None
    assert not store.has_told(4, PEER, "report")
    assert own.report(ROUND, CLAIMS, AFTER) == told


def test_messages_of_other_rounds_stay(store: MemberStore) -> None:
    store.keep_audit_message(3, 0, "report", b"of a peer", b"")
    store.forget_exchange(4)
    assert store.audit_message(3, 0, "report") == (b"of a peer", b"")


def test_a_second_message_of_a_member_does_not_replace_the_first(store: MemberStore) -> None:
    assert store.keep_audit_message(4, 0, "report", b"first", b"a")
    assert store.keep_audit_message(4, 0, "report", b"first", b"b")
    assert not store.keep_audit_message(4, 0, "report", b"second", b"c")
    assert store.audit_message(4, 0, "report") == (b"first", b"a")


def test_a_report_from_before_a_reorganisation_is_forgotten_and_asked_for_again(
    store: MemberStore,
) -> None:
    own, rows = audits(store), (ReportRow(None, b"\6" * 32),)
    old, new = (Report(0, subject, rows).encode() for subject in (BEFORE, AFTER))
    for body in (old, new):
        assert store.keep_audit_message(4, 0, "report", body, b"")
        found = own._read_report(ROUND, 0, SignedMessage(body, b""), AFTER, 1)
        assert (found is None) == (body == old)
    assert own.health["disputes"] == []


def test_a_peer_that_repeats_a_report_on_other_facts_is_named_until_it_says_another(
    store: MemberStore,
) -> None:
    own, rows = audits(store), (ReportRow(None, b"\6" * 32),)
    old, new = (Report(0, subject, rows).encode() for subject in (BEFORE, AFTER))
    for body, named in ((old, []), (old, [PEERS[0]]), (new, [])):
        own._read_report(ROUND, 0, SignedMessage(body, b""), AFTER, 1)
        assert [each for dispute in own.health["disputes"] for each in dispute["members"]] == named


def test_only_messages_about_the_same_facts_contradict_each_other() -> None:
    rows = [(ReportRow(None, bytes([k]) * 32),) for k in range(2)]
    first = Report(0, BEFORE, rows[0]).encode()
    assert contradict(first, Report(0, BEFORE, rows[1]).encode())
    assert not contradict(first, first)
    assert not contradict(first, Report(0, AFTER, rows[1]).encode())
    given = Answers(0, b"\5" * 32, Answer(1, 2, 2, 0), Answer(3, 4, 12, 0))
    heard = [b"a", b"b", b"c"]
    told = encode_revealed(0, heard, {0: given})
    assert contradict(told, encode_revealed(0, heard, {}))
    assert not contradict(told, encode_revealed(0, [b"d", *heard[1:]], {0: given}))
