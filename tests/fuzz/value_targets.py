"""What is inside of messages and files of MPC: values, executables and SPU's shares."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from fuzz_target import Target, joined, parts_of
from message_targets import frame_of, json_of
from protocol_targets import POLICY

from opfl_chain.mpc.aby3 import from_native, to_native
from opfl_chain.mpc.encoding import public_share, split
from opfl_chain.mpc.errors import ExecutableInvalid, FrameInvalid, OptionsInvalid, ShareInvalid
from opfl_chain.mpc.executable import Executable, Input, Output, Visibility
from opfl_chain.mpc.frames import Buffer
from opfl_chain.mpc.native import libspu
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.party_child import result_in
from opfl_chain.mpc.session import RunResult
from opfl_chain.mpc.shares import Share, Storage
from opfl_chain.mpc.statistics import OperationCost, RunStatistics
from opfl_chain.mpc.values import decode_value, encode_value
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.policy import Policy

EXECUTABLE = Executable(
    "gradient",
    (Input("x", (2, 3), "float32", Visibility.SECRET), Input("w", (), "int64", Visibility.PUBLIC)),
    (Output("y", (2,), "bool"),),
    MpcOptions(20, runtime={"fxp_exp_iters": 8}, compiler={"disable_div_sqrt_rewrite": True}),
    b"func.func @main",
)
SHARES = (
    split(np.arange(3), 20, random=bytes)[1],
    public_share(0, np.array([1.5, 2.5], np.float32), 20),
    Share(2, "bool", (2,), Storage("aby3.BShr<PT_U8,1>"), np.array([[1, 0], [0, 1]], np.uint8)),
)
STATISTICS = RunStatistics("p", 1.5, 10, 2, 1 << 20, (OperationCost("pphlo.dot", 1, 0.5, 8, 1),))
VALUES = (
    {"a": [None, True, -1, 0.5, "é"], "b": b"bytes"},
    np.arange(6, dtype=np.int32).reshape(2, 3),
    [np.zeros((0, 3)), np.array([True])],
    SHARES[0],
    EXECUTABLE,
    RunResult({"y": SHARES[2]}, STATISTICS),
)
DEEP = b"[" * 600 + b"]" * 600


def decode_sent_value(data: bytes) -> Any:
    text, *blobs = parts_of(data) or [b""]
    frame = frame_of(b'{"value": %s}' % text, *blobs)
    return decode_value(frame.header.get("value"), frame.blobs)


def encode_sent_value(value: Any) -> bytes:
    blobs: list[Buffer] = []
    text = json_of(encode_value(value, blobs))
    return joined(text, *map(bytes, blobs))


def decode_reply(data: bytes) -> Any:
    header, *blobs = parts_of(data) or [b""]
    return result_in(frame_of(header, *blobs))


def encode_reply(result: Any) -> bytes:
    blobs: list[Buffer] = []
    header = json_of({"result": encode_value(result, blobs)})
    return joined(header, *map(bytes, blobs))


def decode_options(data: bytes) -> Policy:
    policy = Policy.from_json(data)
    MpcOptions.of_policy(policy)
    return policy


def policy_with(runtime: dict[str, Any], compiler: dict[str, Any] | None = None) -> bytes:
    spu = {"runtime_options": runtime, "compiler_options": compiler or {}}
    return Policy.from_mapping(POLICY | {"spu": POLICY["spu"] | spu}).canonical_json


def array_of(dtype: Any, shape: Any) -> bytes:
    document = {"$": "array", "dtype": dtype, "shape": shape, "blob": 0}
    return joined(json_of(document), bytes(8))


def executable_of(**changes: Any) -> bytes:
    """An executable with a header that says something else."""
    data = EXECUTABLE.to_bytes()
    header = json.loads(data[data.index(b"{") : -len(EXECUTABLE.code)])
    return stored(json.dumps(header | changes, sort_keys=True).encode(), EXECUTABLE.code)


def stored(header: bytes, code: bytes = b"", missing: int = 0) -> bytes:
    size = struct.pack(">Q", len(header) + missing)
    return b"opfl executable 1\n" + size + header + code


def decode_share(data: bytes) -> Share:
    meta, *chunks = parts_of(data) or [b""]
    native = libspu.Share()
    native.meta = meta
    native.share_chunks = chunks
    return from_native(1, native)


def encode_share(share: Share) -> bytes:
    native = to_native(share, chunk_bytes=20)
    return joined(native.meta, *native.share_chunks)


def share_of_shape(*shape: int) -> bytes:
    meta = libspu.ValueMeta()
    meta.ParseFromString(to_native(SHARES[0]).meta)
    meta.shape = list(shape)
    return joined(meta.SerializeToString())


VALUE_TARGETS = {
    "value": Target(
        decode_sent_value,
        encode_sent_value,
        (FrameInvalid, ShareInvalid, ExecutableInvalid),
        tuple(map(encode_sent_value, VALUES)),
        findings=(
            joined(DEEP),
            joined(b'{"$": null}'),
            joined(b'{"$": "bytes"}'),
            joined(b'{"$": "bytes", "blob": 1}'),
            joined(b'{"$": "bytes", "blob": []}'),
            joined(b'{"$": "share"}'),
            joined(b'{"$": "statistics"}'),
            joined(b'{"$": "statistics", "operations": [], "colour": 1}'),
            joined(b'{"$": "result", "outputs": {}, "statistics": []}'),
            array_of("no dtype", [1]),
            array_of("<i3", [1]),
            array_of("<i8", [2]),
            array_of("<i8", [1] * 33),
            array_of("<i8", [0, 2**70]),
            array_of("<i8", "1"),
        ),
    ),
    "reply": Target(
        decode_reply,
        encode_reply,
        (FrameInvalid, ShareInvalid, ExecutableInvalid),
        tuple(map(encode_reply, VALUES)),
        findings=(joined(b"{}"), joined(b'{"results": 1}')),
    ),
    "options": Target(
        decode_options,
        lambda policy: policy.canonical_json,
        (DocumentError, OptionsInvalid),
        (
            policy_with({}, {"disable_deallocation_insertion": True}),
            policy_with({"fxp_exp_iters": 8, "sigmoid_mode": "SIGMOID_REAL"}),
        ),
        canonical=True,
        findings=(
            policy_with({"experimental_exp_prime_offset": 2**40}),
            policy_with({"public_random_seed": -1}),
            policy_with({"snapshot_dump_dir": "/etc"}),
            policy_with({"enable_runtime_snapshot": True}),
            policy_with({}, {"pretty_print_dump_dir": "/etc"}),
            policy_with({}, {"enable_pretty_print": True}),
        ),
    ),
    "executable": Target(
        Executable.from_bytes,
        Executable.to_bytes,
        (ExecutableInvalid,),
        (EXECUTABLE.to_bytes(),),
        canonical=True,
        findings=(
            stored(b"[" * 10_000),
            stored(executable_of()[26:].removesuffix(EXECUTABLE.code), missing=1),
            executable_of(name=1),
            executable_of(name="\ud800"),
            executable_of(extra=1),
            executable_of(outputs=[{"name": "y", "shape": "12", "dtype": "int64"}]),
            executable_of(outputs=[{"name": "y", "shape": [-1], "dtype": "int64"}]),
            executable_of(outputs=[{"name": "y", "shape": [1], "dtype": "float16"}]),
        ),
    ),
    "share-of-spu": Target(
        decode_share,
        encode_share,
        (ShareInvalid,),
        tuple(map(encode_share, SHARES)),
        findings=(
            share_of_shape(0, 2**62),
            share_of_shape(*[0] * 40),
            share_of_shape(*[2**62] * 4000),
        ),
    ),
}
