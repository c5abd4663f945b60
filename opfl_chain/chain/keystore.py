"""Secrets at rest: version 3 keystores (scrypt and AES), the format of Ethereum wallets.

Ethereum and BLS keys are both 32 bytes and are kept alike. What differs is the public part, which
is stored in the clear and checked against the secret when the file is opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eth_keyfile.keyfile import create_keyfile_json, decode_keyfile_json, normalize_keys

from opfl_chain.chain.errors import (
    KeystoreError,
    KeystoreExists,
    KeystoreMalformed,
    KeystoreMissing,
    WrongPassword,
)
from opfl_chain.chain.files import write_atomically

SCRYPT_STRONG = 2**18
"""What wallets use: about a second for every guess at the password."""
SCRYPT_CHEAP = 2**4
"""For tests and throw-away devnets only: protects nothing."""

_MOST_WORK = 4 * SCRYPT_STRONG * 8
"""n * r * p, four times that of wallets: a gigabyte, and some seconds."""
_MOST_BLOCKS = 1024
"""r * p, of which wallets use up to 48, and each takes long however small n is."""
_MALFORMED = "is not a version 3 keystore with scrypt. Restore it from a backup."


def write_keystore(
    path: Path, secret: bytes, public: Mapping[str, str], password: str, scrypt_n: int
) -> None:
    """Encrypt into a new file that only its owner can read. An existing one is never replaced."""
    keystore = create_keyfile_json(secret, _bytes(password), kdf="scrypt", iterations=scrypt_n)
    del keystore["address"]  # it would be the Ethereum address of the secret, also for BLS keys
    text = json.dumps({**public, **keystore}, indent=2) + "\n"
    try:
        write_atomically(path, text, mode=0o600, replace=False)
    except FileExistsError as error:
        raise KeystoreExists(
            path, "exists already and may hold the only copy of a key. Move it away first."
        ) from error


def read_keystore(path: Path, password: str) -> tuple[bytes, Mapping[str, Any]]:
    """(secret, everything that stands in the file)."""
    try:
        keystore = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise KeystoreMissing(path, "does not exist. Check the path, or make a new key.") from error
    except OSError as error:
        raise KeystoreError(path, f"cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise KeystoreMalformed(path, _MALFORMED) from error
    try:
        _require_affordable(path, keystore)
        secret = decode_keyfile_json(keystore, _bytes(password))
    except ValueError as error:
        if str(error) == "MAC mismatch":
            raise WrongPassword(path, "the password is wrong. Try another one.") from error
        raise KeystoreMalformed(path, _MALFORMED) from error
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KeystoreMalformed(path, _MALFORMED) from error
    if len(secret) != 32:
        raise KeystoreMalformed(path, f"holds {len(secret)} bytes and a key has 32.")
    return bytes(secret), keystore


def _require_affordable(path: Path, keystore: Any) -> None:
    """Raise unless it takes scrypt to open the keystore, and no more of it than is reasonable."""
    match normalize_keys(keystore):
        case {
            "version": 3,
            "crypto": {
                "kdf": "scrypt",
                "kdfparams": {"n": int(n), "r": int(r), "p": int(p), "dklen": 32},
            },
        } if min(n, r, p) > 0:
            if n * r * p > _MOST_WORK or r * p > _MOST_BLOCKS:
                raise KeystoreMalformed(
                    path,
                    "takes more time or memory to open than four times what wallets use. Its "
                    "scrypt parameters n, r and p were edited: restore it from a backup.",
                )
        case _:
            raise KeystoreMalformed(path, _MALFORMED)


def _bytes(password: str) -> Any:
    """As UTF-8, like every wallet. The library asks for str and would encode that in Latin-1."""
    return password.encode()
