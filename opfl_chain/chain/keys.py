"""Keys in version 3 keystores (scrypt and AES, as Ethereum wallets), and signed statements.

Ethereum and BLS keys both have 32 bytes and are stored in the same way. Only the public part
differs; it is stored in the clear and checked against the secret when the file is opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_keyfile.keyfile import create_keyfile_json, decode_keyfile_json, normalize_keys
from eth_keys.exceptions import BadSignature
from eth_typing import Hash32
from hexbytes import HexBytes

from opfl_chain.chain import errors
from opfl_chain.chain.bls import SecretKey
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.signatures import is_canonical
from opfl_chain.protocol.statements import SigningDomain, Statement
from opfl_chain.system.files import write_atomically

SCRYPT_STRONG = 2**18
"""The setting of wallets: about a second per password guess."""
SCRYPT_CHEAP = 2**4
"""No protection: for tests and throw-away devnets only."""

_MOST_WORK = 4 * SCRYPT_STRONG * 8
"""Limit of n * r * p, four times that of wallets: a gigabyte and some seconds."""
_MOST_BLOCKS = 1024
"""Limit of r * p, which costs time even if n is small. Wallets use up to 48."""
_MALFORMED = "is not a version 3 keystore with scrypt. Restore it from a backup."


def write_keystore(
    path: Path, secret: bytes, public: Mapping[str, str], password: str, scrypt_n: int
) -> None:
    """Encrypt into a new file that only its owner can read. Never replaces a file."""
    keystore = create_keyfile_json(secret, _bytes(password), kdf="scrypt", iterations=scrypt_n)
    del keystore["address"]  # the library writes the secret's Ethereum address, even for BLS keys
    text = json.dumps({**public, **keystore}, indent=2) + "\n"
    try:
        write_atomically(path, text, mode=0o600, replace=False)
    except FileExistsError as error:
        raise errors.KeystoreExists(
            path, "exists already and may hold the only copy of a key. Move it away first."
        ) from error


def read_keystore(path: Path, password: str) -> tuple[bytes, Mapping[str, Any]]:
    """Return (secret, the parsed file)."""
    try:
        keystore = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise errors.KeystoreMissing(
            path, "does not exist. Check the path, or make a new key."
        ) from error
    except OSError as error:
        raise errors.KeystoreError(path, f"cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise errors.KeystoreMalformed(path, _MALFORMED) from error
    try:
        _require_affordable(path, keystore)
        secret = decode_keyfile_json(keystore, _bytes(password))
    except ValueError as error:
        if str(error) == "MAC mismatch":
            raise errors.WrongPassword(path, "the password is wrong. Try another one.") from error
        raise errors.KeystoreMalformed(path, _MALFORMED) from error
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise errors.KeystoreMalformed(path, _MALFORMED) from error
    if len(secret) != 32:
        raise errors.KeystoreMalformed(path, f"holds {len(secret)} bytes, but a key has 32.")
    return bytes(secret), keystore


def _require_affordable(path: Path, keystore: Any) -> None:
    """Raise unless the keystore uses scrypt with a reasonable cost."""
    match normalize_keys(keystore):
        case {
            "version": 3,
            "crypto": {
                "kdf": "scrypt",
                "kdfparams": {"n": int(n), "r": int(r), "p": int(p), "dklen": 32},
            },
        } if min(n, r, p) > 0:
            if n * r * p > _MOST_WORK or r * p > _MOST_BLOCKS:
                raise errors.KeystoreMalformed(
                    path,
                    "takes more time or memory to open than four times what wallets use. Its "
                    "scrypt parameters n, r and p were edited: restore it from a backup.",
                )
        case _:
            raise errors.KeystoreMalformed(path, _MALFORMED)


def _bytes(password: str) -> Any:
    """Encode in UTF-8, as wallets do. The library would encode a str in Latin-1."""
    return password.encode()


def create_ethereum_key(
    path: Path,
    password: str,
    *,
    account: LocalAccount | None = None,
    scrypt_n: int = SCRYPT_STRONG,
) -> LocalAccount:
    """Write a new key (or the given one) to a new keystore that Ethereum wallets can open."""
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
    """Write a new key (or the given one) to a new keystore."""
    key = key or SecretKey.generate()
    public = {"bls12381_g2": key.public_key.compressed().hex()}
    write_keystore(path, key.to_bytes(), public, password, scrypt_n)
    return key


def load_bls_key(path: Path, password: str) -> SecretKey:
    secret, keystore = read_keystore(path, password)
    try:
        key = SecretKey(secret)
    except errors.InvalidScalar as error:
        raise errors.KeystoreMalformed(path, f"does not hold a BLS key: {error}") from error
    public = key.public_key.compressed().hex()
    _require_same(path, "bls12381_g2", keystore.get("bls12381_g2"), public)
    return key


def _require_same(path: Path, field: str, stored: object, derived: str) -> None:
    if str(stored).lower().removeprefix("0x") != derived:
        raise errors.KeystoreMalformed(
            path,
            f"{field!r} is {stored!r} but its secret belongs to {derived!r}. It is a key of "
            "another kind, or was edited.",
        )


def sign_statement(account: LocalAccount, statement: Statement, domain: SigningDomain) -> bytes:
    digest = Hash32(statement.digest(domain))
    return bytes(account.unsafe_sign_hash(digest).signature)


def signer_of(statement: Statement, domain: SigningDomain, signature: bytes) -> Address | None:
    """Recover the signer's address, or None if the contracts would refuse the signature."""
    if not is_canonical(signature):
        return None
    try:
        recovered = Account._recover_hash(
            HexBytes(statement.digest(domain)), signature=HexBytes(signature)
        )
    except (BadSignature, ValueError):
        return None
    return Address(recovered)
