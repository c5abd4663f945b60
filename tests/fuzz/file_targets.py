"""Files from others: deployments, keystores, data sets, answers and components."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
from fuzz_target import Target
from message_targets import json_of

from opfl_chain.chain.deployment import ORDER, Deployment
from opfl_chain.chain.errors import DeploymentInvalid, KeystoreMalformed, WrongPassword
from opfl_chain.chain.keys import SCRYPT_CHEAP, read_keystore, write_keystore
from opfl_chain.chain.rpc import checksum
from opfl_chain.learning.data.idx import read_idx, write_idx
from opfl_chain.learning.errors import DataFileInvalid

T = TypeVar("T")
DEEP = b"[" * 10_000


def with_file(data: bytes, read: Callable[[Path], T]) -> T:
    with TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(data)
        return read(path)


def written(write: Callable[[Path], None]) -> bytes:
    with TemporaryDirectory() as folder:
        write(Path(folder, "file"))
        return Path(folder, "file").read_bytes()


def deployment_with(**changes: Any) -> bytes:
    return json_of(json.loads(DEPLOYMENT) | changes)


def decode_keystore(data: bytes) -> bytes:
    with_file(data, lambda path: read_keystore(path, "password"))
    return data


def keystore_with(**parameters: Any) -> bytes:
    """A keystore with other scrypt parameters."""
    keystore = json.loads(KEYSTORE)
    keystore["crypto"]["kdfparams"] |= parameters
    return json_of(keystore)


DEPLOYMENT = written(
    Deployment(
        chain_id=31337,
        genesis="0x" + "ab" * 32,
        block=1,
        addresses={name: checksum(bytes([i]) * 20) for i, name in enumerate(ORDER)},
        code_hashes=dict.fromkeys(ORDER, "0x" + "cd" * 32),
    ).write
)
KEYSTORE = written(
    lambda path: write_keystore(path, b"\1" * 32, {"address": "ab"}, "password", SCRYPT_CHEAP)
)


FILE_TARGETS = {
    "deployment": Target(
        lambda data: with_file(data, Deployment.read),
        lambda deployment: written(deployment.write),
        (DeploymentInvalid,),
        (DEPLOYMENT,),
        findings=(deployment_with(block=float("inf")), DEEP),
    ),
    "keystore": Target(
        decode_keystore,
        bytes,
        (KeystoreMalformed, WrongPassword),
        (KEYSTORE,),
        findings=(
            keystore_with(r=0),
            keystore_with(n=2**30),
            keystore_with(n=2, r=2**20),
            keystore_with(n=2, r=1, p=2**20),
            keystore_with(dklen=2**30),
            DEEP,
            b'{"a":' * 300 + b"{}" + b"}" * 300,
        ),
    ),
    "idx": Target(
        lambda data: read_idx(data, "file"),
        write_idx,
        (DataFileInvalid,),
        (write_idx(np.arange(6, dtype=np.uint8).reshape(2, 3)), write_idx(np.zeros(3, np.uint8))),
        canonical=True,
        findings=(
            b"\0\0\x08\x28" + b"\0\0\0\1" * 40 + b"x",
            b"\0\0\x08\x04" + bytes(4) + b"\xff" * 12,
        ),
    ),
}
