from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from opfl_chain.chain.errors import (
    ChainError,
    KeystoreError,
    KeystoreExists,
    KeystoreMalformed,
    KeystoreMissing,
    WrongPassword,
)
from opfl_chain.chain.keys import (
    SCRYPT_CHEAP,
    SCRYPT_STRONG,
    create_bls_key,
    create_ethereum_key,
    load_bls_key,
    load_ethereum_key,
)

PASSWORD = "correct horse \N{SNOWMAN}"
Loader = Callable[[Path, str], Any]
BOTH = pytest.mark.parametrize(
    ("create", "load"),
    [
        pytest.param(create_ethereum_key, load_ethereum_key, id="ethereum"),
        pytest.param(create_bls_key, load_bls_key, id="bls"),
    ],
)


@BOTH
def test_a_key_comes_back_with_its_password_only(
    create: Callable[..., Any], load: Loader, tmp_path: Path
) -> None:
    path = tmp_path / "new folder" / "key.json"
    key = create(path, PASSWORD, scrypt_n=SCRYPT_CHEAP)
    assert secret_of(load(path, PASSWORD)) == secret_of(key)
    assert secret_of(key).hex() not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path] == list(path.parent.iterdir())  # no temporary file is left
    for wrong in ("", "correct horse", PASSWORD + " "):
        with pytest.raises(WrongPassword, match=r"key\.json"):
            load(path, wrong)


@BOTH
def test_an_existing_keystore_is_never_replaced(
    create: Callable[..., Any], load: Loader, tmp_path: Path
) -> None:
    path = tmp_path / "key.json"
    key = create(path, PASSWORD, scrypt_n=SCRYPT_CHEAP)
    with pytest.raises(KeystoreExists, match="Move it away"):
        create(path, "other", scrypt_n=SCRYPT_CHEAP)
    assert secret_of(load(path, PASSWORD)) == secret_of(key)


def test_wallets_read_our_keystores_and_we_read_theirs(tmp_path: Path) -> None:
    account = create_ethereum_key(tmp_path / "ours.json", PASSWORD, scrypt_n=SCRYPT_CHEAP)
    keystore = json.loads((tmp_path / "ours.json").read_text())
    assert Account.decrypt(keystore, PASSWORD) == account.key
    theirs = Account.encrypt(account.key, PASSWORD, kdf="scrypt", iterations=SCRYPT_CHEAP)
    (tmp_path / "theirs.json").write_text(json.dumps(theirs))
    assert load_ethereum_key(tmp_path / "theirs.json", PASSWORD).address == account.address


def test_the_default_is_what_wallets_use(tmp_path: Path) -> None:
    create_ethereum_key(tmp_path / "key.json", PASSWORD)
    keystore = json.loads((tmp_path / "key.json").read_text())
    assert keystore["crypto"]["kdfparams"]["n"] == SCRYPT_STRONG == 262_144


def test_a_missing_keystore_says_so(tmp_path: Path) -> None:
    with pytest.raises(KeystoreMissing, match="does not exist"):
        load_bls_key(tmp_path / "none.json", PASSWORD)
    with pytest.raises(KeystoreError, match="cannot be read: Is a directory"):
        load_bls_key(tmp_path, PASSWORD)


def without(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda keystore: {key: value for key, value in keystore.items() if key != name}


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda keystore: [], id="list"),
        pytest.param(lambda keystore: {}, id="empty"),
        pytest.param(without("crypto"), id="no crypto"),
        pytest.param(without("version"), id="no version"),
        pytest.param(without("address"), id="no address"),
        pytest.param(lambda keystore: {**keystore, "version": 9}, id="other version"),
        pytest.param(lambda keystore: {**keystore, "crypto": None}, id="crypto is null"),
        pytest.param(lambda keystore: {**keystore, "address": "00" * 20}, id="other address"),
    ],
)
def test_a_malformed_keystore_is_refused(
    spoil: Callable[[dict[str, Any]], Any], tmp_path: Path
) -> None:
    create_ethereum_key(tmp_path / "good.json", PASSWORD, scrypt_n=SCRYPT_CHEAP)
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(spoil(json.loads((tmp_path / "good.json").read_text()))))
    with pytest.raises(KeystoreMalformed, match=r"bad\.json"):
        load_ethereum_key(bad, PASSWORD)


def with_scrypt(path: Path, **parameters: int) -> Path:
    """Return a keystore that claims other scrypt parameters."""
    create_ethereum_key(path, PASSWORD, scrypt_n=SCRYPT_CHEAP)
    keystore = json.loads(path.read_text())
    keystore["crypto"]["kdfparams"] |= parameters
    path.write_text(json.dumps(keystore))
    return path


@pytest.mark.parametrize(
    "parameters",
    [{"n": 2**21}, {"n": 2**18, "r": 33}, {"n": 2**18, "p": 5}, {"n": 2, "r": 1, "p": 1025}],
)
def test_a_keystore_that_takes_too_much_to_open_is_refused(
    parameters: dict[str, int], tmp_path: Path
) -> None:
    path = with_scrypt(tmp_path / "key.json", **parameters)
    with pytest.raises(KeystoreMalformed, match="takes more time or memory"):
        load_ethereum_key(path, PASSWORD)


def test_parameters_of_light_wallets_are_taken(tmp_path: Path) -> None:
    path = with_scrypt(tmp_path / "key.json", n=4096, p=6)
    with pytest.raises(WrongPassword):  # it was made with others
        load_ethereum_key(path, PASSWORD)


@pytest.mark.parametrize("parameters", [{"n": 0}, {"r": 0}, {"p": -1}, {"n": 17}, {"dklen": 2**30}])
def test_parameters_that_scrypt_does_not_have_are_refused(
    parameters: dict[str, int], tmp_path: Path
) -> None:
    path = with_scrypt(tmp_path / "key.json", **parameters)
    with pytest.raises(KeystoreMalformed, match="is not a version 3 keystore with scrypt"):
        load_ethereum_key(path, PASSWORD)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"hello", b"[" * 10_000])
def test_a_file_that_is_no_json_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "key.json").write_bytes(content)
    with pytest.raises(KeystoreMalformed):
        load_ethereum_key(tmp_path / "key.json", PASSWORD)


def test_a_key_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    create_ethereum_key(tmp_path / "ethereum.json", PASSWORD, scrypt_n=SCRYPT_CHEAP)
    create_bls_key(tmp_path / "bls.json", PASSWORD, scrypt_n=SCRYPT_CHEAP)
    with pytest.raises(ChainError, match="another kind"):
        load_ethereum_key(tmp_path / "bls.json", PASSWORD)
    with pytest.raises(KeystoreMalformed):
        load_bls_key(tmp_path / "ethereum.json", PASSWORD)


def secret_of(key: Any) -> bytes:
    return bytes(key.key) if hasattr(key, "key") else bytes(key.to_bytes())
