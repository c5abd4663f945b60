"""What a member takes from its peers in an exchange: one signed message of each stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_account import Account

from opfl_chain.chain.keys import sign_statement
from opfl_chain.chain.rpc import tohex
from opfl_chain.protocol.exchange import Answers, Report, ReportRow, encode_revealed
from opfl_chain.protocol.identifiers import JobId, RoundNumber, round_id_of
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.published_answers import ANSWERS, REPORT, audit_statement
from opfl_chain.protocol.statements import SigningDomain
from opfl_chain.roles.member.audit_messages import AuditMessages
from opfl_chain.roles.member.store import SCHEMA, MemberStore
from opfl_chain.roles.state import State
from opfl_chain.transport.routes import Refusal, Request

JOB, NUMBER = JobId(1), RoundNumber(4)
ID = round_id_of(JOB, NUMBER)
ROUND: Any = SimpleNamespace(number=NUMBER, id=ID)
DOMAIN = SigningDomain(31337, "0x" + "11" * 20)
MEMBERS = [Account.from_key(bytes([key]) * 32) for key in (1, 2, 3)]
PEER = 2
HEARD = [b"a", b"b", b"c"]


def report(leaves: int = 6, subject: int = 3) -> bytes:
    return Report(PEER, bytes([subject]) * 32, (ReportRow(None, bytes([leaves]) * 32),)).encode()


def answers(word: int = 1) -> bytes:
    given = Answers(PEER, b"\5" * 32, Answer(word, 2, 2, 0), Answer(3, 4, 12, 0))
    return encode_revealed(PEER, HEARD, {0: given})


class Taking:
    """Member 0, and whom it names."""

    def __init__(self, store: MemberStore) -> None:
        self.store = store
        self.named: list[tuple[int, str]] = []
        node: Any = SimpleNamespace(
            job=SimpleNamespace(id=JOB, domain=DOMAIN, members=[each.address for each in MEMBERS]),
            view=SimpleNamespace(round=lambda number: ROUND if number == NUMBER else None),
            peers=SimpleNamespace(others=lambda own: [(1, ""), (2, "")]),
            address=MEMBERS[0].address,
            wake=lambda: None,
        )
        self.messages = AuditMessages(
            node, 0, store, lambda round_, rank, reason: self.named.append((rank, reason))
        )

    def take(
        self, stage: str, body: bytes, signer: int = PEER, rank: str = "2", stated: str = ""
    ) -> int:
        """Return the status; `stated` is the stage that was signed, if it is another."""
        statement = audit_statement(JOB, NUMBER, stated or stage, body)
        signature = tohex(sign_statement(MEMBERS[signer], statement, DOMAIN))
        parts = {"round": str(ID), "stage": stage, "rank": rank}
        request = Request("POST", "", parts, {"opfl-signature": signature}, body, "")
        try:
            return self.messages.take(request).status
        except Refusal as refusal:
            return refusal.status

    def kept(self, stage: str) -> bytes | None:
        found = self.store.audit_message(NUMBER, PEER, stage)
        return found[0] if found else None


@pytest.fixture
def taking(tmp_path: Path) -> Iterator[Taking]:
    state = State(tmp_path / "state.sqlite", "member", SCHEMA)
    yield Taking(MemberStore(state))
    state.close()


@pytest.mark.parametrize(
    ("stage", "first", "second"),
    [(REPORT, report(), report(leaves=7)), (ANSWERS, answers(), answers(word=2))],
    ids=[REPORT, ANSWERS],
)
def test_who_says_two_different_things_is_named_and_the_first_counts(
    taking: Taking, stage: str, first: bytes, second: bytes
) -> None:
    assert taking.take(stage, first) == 200
    assert taking.take(stage, first) == 200 and not taking.named
    assert taking.take(stage, second) == 409
    assert taking.kept(stage) == first
    assert taking.named == [(PEER, f"signed two different messages of stage {stage}")]


def test_a_report_on_other_facts_is_refused_and_names_nobody(taking: Taking) -> None:
    """An honest peer may have seen a reorganisation before us."""
    assert taking.take(REPORT, report()) == 200
    assert taking.take(REPORT, report(subject=4)) == 409
    assert taking.kept(REPORT) == report() and not taking.named


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"signer": 1}, 401),
        ({"stated": ANSWERS}, 401),
        ({"rank": "1"}, 401),
        ({"rank": "0"}, 404),
        ({"rank": "3"}, 404),
        ({"rank": "-1"}, 404),
        ({"rank": "\u0662"}, 404),
    ],
    ids=lambda value: str(value).encode("ascii", "replace").decode(),
)
def test_messages_in_the_name_of_somebody_else_are_refused(
    taking: Taking, changes: dict[str, Any], status: int
) -> None:
    assert taking.take(REPORT, report(), **changes) == status
    assert taking.kept(REPORT) is None and not taking.named


def test_an_unknown_stage_is_refused(taking: Taking) -> None:
    assert taking.take("verdict", report(), stated=REPORT) == 404
