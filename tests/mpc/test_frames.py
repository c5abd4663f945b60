"""What travels between processes, and what of it is refused."""

from __future__ import annotations

import json
import socket
import struct
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpc_support import BITS, Programs

from opfl_chain.mpc.encoding import split
from opfl_chain.mpc.error_values import as_mpc_error, decode_error, encode_error
from opfl_chain.mpc.errors import (
    CopiesDiffer,
    FrameInvalid,
    InputMismatch,
    MpcError,
    PeerUnreachable,
    ProgramFailed,
)
from opfl_chain.mpc.frames import (
    HUGE,
    Buffer,
    Frame,
    FrameBuffer,
    pack,
    receive_frame,
    send_frame,
)
from opfl_chain.mpc.session import RunResult
from opfl_chain.mpc.statistics import OperationCost, RunStatistics, parse_profile, total
from opfl_chain.mpc.values import decode_value, encode_value
from opfl_chain.transport.deadline import Deadline

STATISTICS = RunStatistics("p", 1.5, 10, 2, 1 << 20, (OperationCost("pphlo.dot", 1, 0.5, 8, 1),))


def through(value: Any) -> Any:
    """A value after a journey through a socket."""
    blobs: list[Buffer] = []
    frame = Frame({"value": encode_value(value, blobs)}, tuple(blobs))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=send_frame, args=(ours, frame, Deadline(10)))
        sender.start()
        received = receive_frame(theirs, Deadline(10), HUGE)
        sender.join()
    return decode_value(received.header["value"], received.blobs)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(-1e9, 1e9),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(min_size=2), inner),
        max_leaves=8,
    )
)
def test_plain_values_arrive_as_they_were(value: Any) -> None:
    assert through(value) == value


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.arange(6).reshape(2, 3).T,
        np.zeros((0, 3), np.float32),
        np.array(5, np.uint64),
        np.array([True, False]),
        np.zeros(1 << 21),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_arrive_as_they_were(array: np.ndarray) -> None:
    arrived = through({"a": [array]})["a"][0]
    assert np.array_equal(arrived, array)
    assert (arrived.dtype, arrived.shape) == (array.dtype, array.shape)


def test_shares_executables_and_results_arrive_as_they_were(programs: Programs) -> None:
    share = split(np.arange(4.0), BITS)[1]
    arrived = through({"e": programs.mixed, "r": RunResult({"s": share}, STATISTICS)})
    assert arrived["e"] == programs.mixed
    assert arrived["r"].statistics == STATISTICS
    back = arrived["r"].outputs["s"]
    assert (back.rank, back.dtype, back.storage) == (1, "float64", share.storage)
    assert np.array_equal(back.words, share.words)


@pytest.mark.parametrize("value", [object(), {1: 2}, {"$": 1}, np.array(["a"]), {1, 2}])
def test_other_values_are_not_sent(value: Any) -> None:
    with pytest.raises(TypeError):
        encode_value(value, [])


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(FrameInvalid, match="kind 'pickle'"):
        decode_value({"$": "pickle"}, ())
    with pytest.raises(FrameInvalid, match="array of object"):
        decode_value({"$": "array", "dtype": "|O", "shape": [1], "blob": 0}, (b"12345678",))


@given(st.binary(max_size=200))
def test_random_bytes_are_no_frame(data: bytes) -> None:
    buffer = FrameBuffer()
    try:
        frames = list(buffer.feed(data))
    except FrameInvalid:
        return
    assert not frames  # too short to tell


@given(st.lists(st.integers(1, 40), max_size=30))
def test_frames_are_found_however_they_are_cut(cuts: list[int]) -> None:
    stream = b"".join(bytes(part) for n in range(3) for part in pack(Frame({"n": n}, (b"ab", b""))))
    buffer, found = FrameBuffer(), []
    for size in [*cuts, len(stream)]:
        found += list(buffer.feed(stream[:size]))
        stream = stream[size:]
    assert [frame.header["n"] for frame in found] == [0, 1, 2]
    assert all(bytes(frame.blobs[0]) == b"ab" for frame in found)


@pytest.mark.parametrize(
    "document",
    [
        b"[]",
        b"{}",
        b"{",
        b'{"header": {}}',
        b'{"header": 1, "blobs": []}',
        b'{"header": {}, "blobs": [1]}',
        b'{"header": {}, "blobs": [-1, 1]}',
        b'{"header": {}, "blobs": "x"}',
        b"[" * 50_000,
    ],
)
def test_a_malformed_header_is_refused(document: bytes) -> None:
    data = struct.pack(">4sIQ", b"OPFL", len(document), 0) + document
    with pytest.raises(FrameInvalid):
        list(FrameBuffer(1 << 20).feed(data))


def test_a_frame_that_is_too_long_is_refused_by_its_length() -> None:
    with pytest.raises(FrameInvalid, match="more than 65536"):
        list(FrameBuffer().feed(struct.pack(">4sIQ", b"OPFL", 10, 1 << 60)))


def test_a_stream_that_ends_or_stops_is_told_apart() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(b"OPFL")
            with pytest.raises(TimeoutError):
                receive_frame(theirs, Deadline(0.05), HUGE)
        with pytest.raises(ConnectionError):
            receive_frame(theirs, Deadline(5), HUGE)


# --- errors and statistics


@pytest.mark.parametrize(
    "error",
    [
        PeerUnreachable(2, "host:1", 3.5, "why"),
        InputMismatch("program", "x", "is missing"),
        CopiesDiffer(1, (0, 2)),
        MpcError("plain"),
    ],
)
def test_errors_arrive_as_they_were(error: MpcError) -> None:
    arrived = decode_error(json.loads(json.dumps(encode_error(error))))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived).keys() == vars(error).keys()


def test_foreign_errors_are_named() -> None:
    error = as_mpc_error(ZeroDivisionError("by zero"), "the program")
    assert isinstance(error, ProgramFailed)
    assert str(error) == "the program failed: ZeroDivisionError: by zero"


LOG = """
[info] HLO profiling: total time 1.5
[info] - pphlo.dot, executed 2 times, duration 0.5s, send bytes 100 recv bytes 90, send actions 3, recv actions 4
[info] - pphlo.free, executed 9 times, duration 1e-05s, send bytes 0 recv bytes 0, send actions 0, recv actions 0
[info] Link details: total send bytes 120, recv bytes 110, send actions 5, recv actions 6
"""  # noqa: E501


def test_spus_profile_is_read() -> None:
    assert parse_profile("") == (0, 0, ())
    sent, messages, operations = parse_profile(LOG)
    assert (sent, messages) == (120, 5)
    assert operations[0] == OperationCost("pphlo.dot", 2, 0.5, 100, 3)
    assert operations[1] == OperationCost("pphlo.free", 9, 1e-5, 0, 0)
    assert parse_profile(LOG * 3)[:2] == (360, 15)


def test_costs_of_all_members_add_up() -> None:
    faster = RunStatistics("p", 1.0, 5, 1, 1 << 21, STATISTICS.operations)
    assert total([STATISTICS, faster]) == RunStatistics(
        "p", 1.5, 15, 3, 1 << 21, (OperationCost("pphlo.dot", 1, 0.5, 16, 2),)
    )
