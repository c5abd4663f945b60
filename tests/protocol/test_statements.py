"""Statements: digests as eth_account computes them, and what they bind."""

from dataclasses import fields, replace
from typing import Any

import pytest
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from protocol_vectors import addresses, jobs, rounds, words

from opfl_chain.protocol.errors import WidthError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.statements import (
    Answer,
    AuditOutcome,
    Contribution,
    MemberFaultStatement,
    MemberMessage,
    Roll,
    RoundResult,
    SeatChange,
    SigningDomain,
)

domains = st.builds(SigningDomain, st.integers(0, 2**256 - 1), addresses)
slots, bytes_ = st.integers(0, 2**32 - 1), st.integers(0, 255)
TYPES = {
    Contribution: "address client,bytes32 contentHash",
    Answer: "address client,bytes32 contentHash",
    Roll: "bytes32 root,uint32 count,bytes32 pairsHash",
    RoundResult: "bytes32 verdictHash,bytes32 aggregateHash,bytes32 modelHash",
    AuditOutcome: "address client,uint8 outcome",
    MemberMessage: "uint32 slot,bytes32 contentHash",
    MemberFaultStatement: "address member,uint8 fault",
}
VALUES = {"address": addresses, "bytes32": words, "uint32": slots, "uint8": bytes_}
ROUND = "uint64 job,uint32 round,bytes32 opening"


def eth_account_digest(domain: SigningDomain, name: str, arguments: str, values: Any) -> bytes:
    """Hash with eth_account, from fields given as in `type field,...`."""
    pairs = [argument.split(" ") for argument in arguments.split(",")]
    signable = encode_typed_data(
        domain_data={
            "name": "opfl_chain",
            "version": "2",
            "chainId": domain.chain_id,
            "verifyingContract": domain.jobs,
        },
        message_types={name: [{"name": field, "type": kind} for kind, field in pairs]},
        message_data={field: value for (_, field), value in zip(pairs, values, strict=True)},
    )
    return keccak256(b"\x19", *signable)


def values_of(statement: Any) -> list[Any]:
    return [getattr(statement, field.name) for field in fields(statement)]


@pytest.mark.parametrize("kind", list(TYPES), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_statement_agrees_with_eth_account(kind, data):
    rest = [VALUES[each.split(" ")[0]] for each in TYPES[kind].split(",")]
    statement = data.draw(st.builds(kind, jobs, rounds, words, *rest))
    domain = data.draw(domains)
    assert statement.digest(domain) == eth_account_digest(
        domain,
        kind.__name__.removesuffix("Statement"),
        f"{ROUND},{TYPES[kind]}",
        values_of(statement),
    )


@given(domains, st.builds(SeatChange, jobs, bytes_, bytes_, addresses))
def test_seat_change_agrees_with_eth_account(domain, statement):
    fields = "uint64 job,uint8 epoch,uint8 seat,address standby"
    found = eth_account_digest(domain, "SeatChange", fields, values_of(statement))
    assert statement.digest(domain) == found


def test_digest_depends_on_chain_and_contract():
    statement = SeatChange(1, 0, 0, "0x" + "11" * 20)
    domains = [
        SigningDomain(1, "0x" + "22" * 20),
        SigningDomain(2, "0x" + "22" * 20),
        SigningDomain(1, "0x" + "33" * 20),
    ]
    assert len({statement.digest(domain) for domain in domains}) == 3


def test_a_contribution_is_not_an_answer_and_is_for_one_opening():
    domain = SigningDomain(1, "0x" + "22" * 20)
    client, other = ("0x" + digits * 20 for digits in ("11", "55"))
    contribution = Contribution(1, 0, bytes(32), client, bytes(32))
    others = [
        Answer(1, 0, bytes(32), client, bytes(32)),
        replace(contribution, job=2),
        replace(contribution, round=1),
        replace(contribution, opening=b"\1" * 32),
        replace(contribution, client=other),
        replace(contribution, content_hash=b"\1" * 32),
    ]
    assert len({each.digest(domain) for each in [contribution, *others]}) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"opening": bytes(31)}, "opening has 31 bytes"),
        ({"content_hash": bytes(33)}, "content hash has 33 bytes"),
        ({"client": "0x44"}, "client"),
        ({"job": 2**64}, "job is"),
    ],
)
def test_a_value_of_another_width_is_refused(change, message):
    statement = Contribution(1, 0, bytes(32), "0x" + "11" * 20, bytes(32))
    with pytest.raises(WidthError, match=message):
        replace(statement, **change).digest(SigningDomain(1, "0x" + "22" * 20))
