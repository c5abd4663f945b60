"""The two keys of a participant: an Ethereum key to sign with, a BLS key for the beacon."""

from __future__ import annotations

from pathlib import Path

from eth_account import Account
from eth_account.signers.local import LocalAccount

from opfl_chain.chain.bls import SecretKey
from opfl_chain.chain.errors import InvalidScalar, KeystoreMalformed
from opfl_chain.chain.keystore import SCRYPT_STRONG, read_keystore, write_keystore


def create_ethereum_key(
    path: Path,
    password: str,
    *,
    account: LocalAccount | None = None,
    scrypt_n: int = SCRYPT_STRONG,
) -> LocalAccount:
    """A new key (or the given one) in a new keystore, which any Ethereum wallet can open."""
    account = account or Account.create()
    public = {"address": account.address[2:].lower()}
    write_keystore(path, bytes(account.key), public, password, scrypt_n)
    return account


def load_ethereum_key(path: Path, password: str) -> LocalAccount:
    secret, keystore = read_keystore(path, password)
    account: LocalAccount = Account.from_key(secret)
    _require_same(path, "address", keystore.get("address"), account.address[2:].lower())
    return account


def create_bls_key(
    path: Path,
    password: str,
    *,
    key: SecretKey | None = None,
    scrypt_n: int = SCRYPT_STRONG,
) -> SecretKey:
    """A new key (or the given one) in a new keystore."""
    key = key or SecretKey.generate()
    public = {"bls12381_g2": key.public_key.compressed().hex()}
    write_keystore(path, key.to_bytes(), public, password, scrypt_n)
    return key


def load_bls_key(path: Path, password: str) -> SecretKey:
    secret, keystore = read_keystore(path, password)
    try:
        key = SecretKey(secret)
    except InvalidScalar as error:
        raise KeystoreMalformed(path, f"holds no BLS key: {error}") from error
    public = key.public_key.compressed().hex()
    _require_same(path, "bls12381_g2", keystore.get("bls12381_g2"), public)
    return key


def _require_same(path: Path, field: str, stored: object, derived: str) -> None:
    if str(stored).lower().removeprefix("0x") != derived:
        raise KeystoreMalformed(
            path,
            f"{field!r} is {stored!r} and its secret belongs to {derived!r}. It is a key of "
            "another kind, or was edited.",
        )
