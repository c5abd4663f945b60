from dataclasses import replace
from typing import Any

import pytest
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from protocol_vectors import addresses, jobs, rounds, words

from opfl_chain.protocol.errors import WidthError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.statements import (
    Acquittal,
    DeliveryEnvelope,
    DeliveryReceipt,
    GradientCommitment,
    RoundResult,
    SigningDomain,
)

domains = st.builds(SigningDomain, st.integers(0, 2**256 - 1), addresses)


def eth_account_digest(domain: SigningDomain, fields: str, message: dict[str, Any]) -> bytes:
    """Hash with eth_account, from a type given as in `Name(type field,...)`."""
    name, arguments = fields.removesuffix(")").split("(")
    pairs = [argument.split(" ") for argument in arguments.split(",")]
    signable = encode_typed_data(
        domain_data={
            "name": "opfl_chain",
            "version": "1",
            "chainId": domain.chain_id,
            "verifyingContract": domain.jobs,
        },
        message_types={name: [{"name": field, "type": kind} for kind, field in pairs]},
        message_data=message,
    )
    return keccak256(b"\x19", *signable)


@given(domains, st.builds(GradientCommitment, jobs, rounds, addresses, words))
def test_gradient_commitment_agrees_with_eth_account(domain, statement):
    assert statement.digest(domain) == eth_account_digest(
        domain,
        "GradientCommitment(uint64 job,uint32 round,address client,bytes32 commitment)",
        vars(statement),
    )


@given(domains, st.builds(DeliveryEnvelope, jobs, rounds, addresses, addresses, words))
def test_delivery_envelope_agrees_with_eth_account(domain, statement):
    message = vars(statement) | {"contentHash": statement.content_hash}
    del message["content_hash"]
    assert statement.digest(domain) == eth_account_digest(
        domain,
        "DeliveryEnvelope(uint64 job,uint32 round,address client,address member,"
        "bytes32 contentHash)",
        message,
    )


@given(domains, st.builds(DeliveryReceipt, jobs, rounds, addresses, st.booleans()))
def test_delivery_receipt_agrees_with_eth_account(domain, statement):
    assert statement.digest(domain) == eth_account_digest(
        domain,
        "DeliveryReceipt(uint64 job,uint32 round,address client,bool audited)",
        vars(statement),
    )


@given(domains, st.builds(Acquittal, jobs, rounds, addresses))
def test_acquittal_agrees_with_eth_account(domain, statement):
    assert statement.digest(domain) == eth_account_digest(
        domain, "Acquittal(uint64 job,uint32 round,address client)", vars(statement)
    )


@given(domains, st.builds(RoundResult, jobs, rounds, words, words, words))
def test_round_result_agrees_with_eth_account(domain, statement):
    message = {
        "job": statement.job,
        "round": statement.round,
        "verdictHash": statement.verdict_hash,
        "aggregateHash": statement.aggregate_hash,
        "modelHash": statement.model_hash,
    }
    assert statement.digest(domain) == eth_account_digest(
        domain,
        "RoundResult(uint64 job,uint32 round,"
        "bytes32 verdictHash,bytes32 aggregateHash,bytes32 modelHash)",
        message,
    )


def test_digest_depends_on_chain_and_contract():
    statement = Acquittal(1, 0, "0x" + "11" * 20)
    domains = [
        SigningDomain(1, "0x" + "22" * 20),
        SigningDomain(2, "0x" + "22" * 20),
        SigningDomain(1, "0x" + "33" * 20),
    ]
    assert len({statement.digest(domain) for domain in domains}) == 3


def test_envelope_is_for_one_member_round_and_content():
    domain = SigningDomain(1, "0x" + "22" * 20)
    client, member, other = ("0x" + digits * 20 for digits in ("11", "44", "55"))
    envelope = DeliveryEnvelope(1, 0, client, member, bytes(32))
    others = [
        replace(envelope, job=2),
        replace(envelope, round=1),
        replace(envelope, client=other),
        replace(envelope, member=other),
        replace(envelope, client=member, member=client),
        replace(envelope, content_hash=b"\1" * 32),
    ]
    assert len({each.digest(domain) for each in [envelope, *others]}) == 7
    with pytest.raises(WidthError, match="content hash has 33 bytes"):
        replace(envelope, content_hash=bytes(33)).digest(domain)
    with pytest.raises(WidthError, match="member"):
        replace(envelope, member="0x44").digest(domain)


def test_short_commitment_is_refused():
    statement = GradientCommitment(1, 0, "0x" + "11" * 20, bytes(31))
    with pytest.raises(WidthError, match="commitment has 31 bytes"):
        statement.digest(SigningDomain(1, "0x" + "22" * 20))
