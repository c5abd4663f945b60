"""A signature that the contracts refuse counts nowhere: the attacks named `high-s`."""

import pytest
from eth_account import Account
from eth_typing import Hash32
from hexbytes import HexBytes
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.chain.keys import sign_statement, signer_of
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.signatures import CURVE_ORDER, is_canonical
from opfl_chain.protocol.statements import AuditOutcome, Contribution, SigningDomain
from opfl_chain.protocol.verdict import Outcome

ACCOUNT = Account.from_key(b"\x07" * 32)
ADDRESS = Address(ACCOUNT.address)
DOMAIN = SigningDomain(31337, ADDRESS)
STATEMENTS = (
    Contribution(1, 2, b"\x22" * 32, ADDRESS, b"\x11" * 32),
    AuditOutcome(1, 2, b"\x22" * 32, ADDRESS, Outcome.OUTSIDE),
)


def twin(signature: bytes) -> bytes:
    """Return the other signature of the same signer and digest, with the higher s."""
    s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])


@pytest.mark.parametrize("statement", STATEMENTS)
def test_twin_of_a_signature_is_worth_nothing(statement):
    signature = sign_statement(ACCOUNT, statement, DOMAIN)
    assert signer_of(statement, DOMAIN, signature) == ADDRESS
    assert signer_of(statement, DOMAIN, twin(signature)) is None


@pytest.mark.parametrize("statement", STATEMENTS)
def test_twin_would_be_accepted_by_recovery_alone(statement):
    """The attack with the defence off: libraries recover the same signer from both."""
    signature = twin(sign_statement(ACCOUNT, statement, DOMAIN))
    digest = HexBytes(statement.digest(DOMAIN))
    assert Account._recover_hash(digest, signature=HexBytes(signature)) == ADDRESS


@given(st.binary(min_size=32, max_size=32))
def test_of_two_twins_one_is_canonical(digest):
    signature = bytes(ACCOUNT.unsafe_sign_hash(Hash32(digest)).signature)
    assert is_canonical(signature)
    assert not is_canonical(twin(signature))
    assert twin(twin(signature)) == signature
