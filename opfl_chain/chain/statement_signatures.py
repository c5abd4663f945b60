"""Signatures of the protocol's statements by Ethereum accounts."""

from __future__ import annotations

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_keys.exceptions import BadSignature
from eth_typing import Hash32
from hexbytes import HexBytes

from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.statements import SigningDomain, Statement

SIGNATURE_BYTES = 65


def sign_statement(account: LocalAccount, statement: Statement, domain: SigningDomain) -> bytes:
    digest = Hash32(statement.digest(domain))
    return bytes(account.unsafe_sign_hash(digest).signature)


def signer_of(statement: Statement, domain: SigningDomain, signature: bytes) -> Address | None:
    """Who signed it, or None if these bytes are no signature."""
    if len(signature) != SIGNATURE_BYTES or signature[-1] not in (27, 28):
        return None
    try:
        recovered = Account._recover_hash(
            HexBytes(statement.digest(domain)), signature=HexBytes(signature)
        )
    except (BadSignature, ValueError):
        return None
    return Address(recovered)
