"""Contents of MPC messages and files: values, executables and SPU's shares."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from fuzz_target import Target, joined, parts_of
from message_targets import frame_of, json_of
from protocol_targets import POLICY

from opfl_chain.mpc.audit.checks import InputRules
from opfl_chain.mpc.audit.contribution import TreeOpening
from opfl_chain.mpc.audit.judge import Finding
from opfl_chain.mpc.session.codec import decode_value, encode_value
from opfl_chain.mpc.session.errors import (
    ExecutableInvalid,
    FrameInvalid,
    OptionsInvalid,
    ShareInvalid,
)
from opfl_chain.mpc.session.executable import Executable, Input, MpcOptions, Output, Visibility
from opfl_chain.mpc.session.libspu import from_spu, libspu, to_spu
from opfl_chain.mpc.session.messages import Buffer
from opfl_chain.mpc.session.party import result_in
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.requests import Call, Join
from opfl_chain.mpc.session.session import RunResult
from opfl_chain.mpc.session.shares import Share, Storage, public_share, split
from opfl_chain.mpc.session.statistics import OperationCost, RunStatistics
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.commitments import Subject
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.evidence import Evidence, Forms, ReplayOutputs

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
HELD = (np.arange(3, dtype=np.uint64), np.arange(3, 6, dtype=np.uint64))
VALUES = (
    {"a": [None, True, -1, 0.5, "é"], "b": b"bytes"},
    np.arange(6, dtype=np.int32).reshape(2, 3),
    [np.zeros((0, 3)), np.array([True])],
    SHARES[0],
    EXECUTABLE,
    RunResult({"y": SHARES[2]}, STATISTICS),
    Call("opfl_chain.mpc.audit.judge:decide", {"count": 1}),
    Join(
        PartyConfig(1, ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")), "audit", 9.5, 1.0, 3.0, 2.0
    ),
    [Finding(), Finding(bytes(range(32)))],
    TreeOpening(Subject.INPUT, bytes(32), HELD),
    Evidence(HELD, HELD, None, ReplayOutputs(HELD, totals=HELD)),
    Forms(784, AdviceFormat(6508, 22, 1, 22)),
    InputRules(784, 10, 1 << 22, -(1 << 21), 1 << 23),
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
    """An executable with a changed header."""
    data = EXECUTABLE.to_bytes()
    header = json.loads(data[data.index(b"{") : -len(EXECUTABLE.code)])
    return stored(json.dumps(header | changes, sort_keys=True).encode(), EXECUTABLE.code)


def stored(header: bytes, code: bytes = b"", missing: int = 0) -> bytes:
    size = struct.pack(">Q", len(header) + missing)
    return b"opfl executable 1\n" + size + header + code


def decode_share(data: bytes) -> Share:
    meta, *chunks = parts_of(data) or [b""]
    spu_share = libspu.Share()
    spu_share.meta = meta
    spu_share.share_chunks = chunks
    return from_spu(1, spu_share)


def encode_share(share: Share) -> bytes:
    spu_share = to_spu(share, chunk_bytes=20)
    return joined(spu_share.meta, *spu_share.share_chunks)


def share_of_shape(*shape: int) -> bytes:
    meta = libspu.ValueMeta()
    meta.ParseFromString(to_spu(SHARES[0]).meta)
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
            joined(b'{"$": "Share"}'),
            joined(b'{"$": "RunStatistics"}'),
            joined(b'{"$": "RunStatistics", "operations": [], "colour": 1}'),
            joined(b'{"$": "RunResult", "outputs": {}, "statistics": []}'),
            joined(b'{"$": "Finding", "fault": 9, "leaves": {"$": "bytes", "blob": 0}}', b"x"),
            joined(b'{"$": "Finding", "fault": true, "leaves": {"$": "bytes", "blob": 0}}', b"x"),
            joined(b'{"$": "Forms", "feature_words": 784, "advice": [1, 2, 3, 4]}'),
            joined(b'{"$": "Forms", "feature_words": "784", "advice": null}'),
            joined(b'{"$": "TreeOpening", "subject": [], "commitment": null, "opening": {}}'),
            joined(b'{"$": "Storage", "name": {"$": "Leave"}}'),
            joined(b'{"$": "boundary", "blob": 0}', b'{"rule": "none"}'),
            joined(b'{"$": ["Forms"]}'),
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
