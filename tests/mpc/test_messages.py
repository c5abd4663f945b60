"""Messages between processes, valid and invalid."""

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

from opfl_chain.mpc.audit.contribution import TreeOpening
from opfl_chain.mpc.audit.judge import Finding
from opfl_chain.mpc.session.codec import (
    as_mpc_error,
    decode_error,
    decode_value,
    encode_error,
    encode_value,
    typed_arguments,
    typed_result,
)
from opfl_chain.mpc.session.errors import (
    CopiesDiffer,
    FrameInvalid,
    InputMismatch,
    MpcError,
    PeerUnreachable,
    ProgramFailed,
)
from opfl_chain.mpc.session.messages import (
    HUGE,
    Buffer,
    Frame,
    FrameBuffer,
    pack,
    receive_frame,
    send_frame,
)
from opfl_chain.mpc.session.session import RunResult
from opfl_chain.mpc.session.shares import split
from opfl_chain.mpc.session.statistics import OperationCost, RunStatistics, parse_profile, total
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.commitments import Subject
from opfl_chain.protocol.policy import PAPER_GRID
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.rules.evidence import Evidence, Forms, ReplayOutputs
from opfl_chain.rules.paper import PaperBoundary
from opfl_chain.transport.deadline import Deadline

BOUNDARY = PaperBoundary.from_mapping(
    {
        "policy_hash": "0x" + "00" * 32,
        "spu_version": "0.9.5",
        "coordinates": 3,
        "grid": list(PAPER_GRID),
        "epsilon": 2**12,
        "absolute": [2**12] * len(PAPER_GRID),
        "relative": [1] * len(PAPER_GRID),
        "infinity": 2**13,
    }
)
STATISTICS = RunStatistics("p", 1.5, 10, 2, 1 << 20, (OperationCost("pphlo.dot", 1, 0.5, 8, 1),))


def through(value: Any) -> Any:
    """Return a value after sending it through a socket."""
    blobs: list[Buffer] = []
    frame = Frame({"value": encode_value(value, blobs)}, tuple(blobs))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=send_frame, args=(ours, frame, Deadline(120)))
        sender.start()
        received = receive_frame(theirs, Deadline(120), HUGE)
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


HELD = (np.arange(3, dtype=np.uint64), np.arange(3, 6, dtype=np.uint64))
EVIDENCE = Evidence(HELD, HELD, None, ReplayOutputs(HELD, totals=HELD))


def test_records_arrive_as_they_were() -> None:
    forms = Forms(784, AdviceFormat(6508, 22, 1, 22))
    findings = [Finding(), Finding(bytes(range(32)))]
    assert through([forms, findings]) == [forms, findings]
    arrived = through(EVIDENCE)
    assert type(arrived) is Evidence and type(arrived.replay) is ReplayOutputs
    assert arrived.advice is None and arrived.replay.arguments is None
    assert np.array_equal(arrived.gradient, HELD) and np.array_equal(arrived.replay.totals, HELD)
    tree = through(TreeOpening(Subject.INPUT, bytes(32), HELD))
    assert (tree.subject, tree.commitment) == (Subject.INPUT, bytes(32))


def test_a_boundary_arrives_by_its_canonical_bytes() -> None:
    arrived = through({"boundary": BOUNDARY})["boundary"]
    assert type(arrived) is PaperBoundary and arrived == BOUNDARY


def sent(value: Any) -> tuple[Any, tuple[Buffer, ...]]:
    blobs: list[Buffer] = []
    return encode_value(value, blobs), tuple(blobs)


def without(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: each for key, each in document.items() if key != name}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: without(e, "advice"), "Evidence without advice"),
        (lambda e: e | {"colour": 1}, "Evidence with unknown colour"),
        (lambda e: e | {"gradient": 5}, "Evidence.gradient is of type int, expected tuple"),
        (
            lambda e: e | {"gradient": e["gradient"][:1]},
            "gradient has 1 parts, expected 2",
        ),
        (
            lambda e: e | {"gradient": [e["gradient"][0] | {"dtype": "<f8"}, e["gradient"][1]]},
            r"Evidence.gradient\[0\] is of type array of float64",
        ),
        (
            lambda e: e | {"gradient": [e["gradient"][0] | {"shape": [3, 1]}, e["gradient"][1]]},
            "Evidence.gradient has components of different shapes",
        ),
        (
            lambda e: e | {"replay": e},
            "replay is of type Evidence, expected ReplayOutputs",
        ),
        (lambda e: e | {"advice": "none"}, "Evidence.advice is of type str"),
    ],
    ids=["missing", "unknown", "type", "parts", "dtype", "shape", "record", "optional"],
)
def test_a_record_of_other_fields_is_refused(change: Any, reason: str) -> None:
    document, blobs = sent(EVIDENCE)
    with pytest.raises(FrameInvalid, match=reason):
        decode_value(change(document), blobs)


def test_arguments_and_results_are_as_annotated() -> None:
    def procedure(runtime: object, *, count: int, faults: list[Outcome | None]) -> tuple[int, ...]:
        del runtime, count, faults
        return ()

    faults = [2, None]
    typed = typed_arguments(procedure, {"count": 1, "faults": faults})
    assert typed["faults"] == [Outcome.OUTSIDE, None]
    assert typed["faults"][0] is Outcome.OUTSIDE
    assert typed_result(procedure, [1, 2]) == (1, 2)
    for wrong in ({"count": True}, {"count": "1"}, {"count": 1.0}, {"faults": [9]}, {"faults": 1}):
        with pytest.raises(FrameInvalid, match=f"argument '{next(iter(wrong))}'"):
            typed_arguments(procedure, wrong)
    with pytest.raises(FrameInvalid, match=r"the result\[1\] is of type str, expected int"):
        typed_result(procedure, [1, "2"])


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
def test_messages_are_found_however_they_are_cut(cuts: list[int]) -> None:
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
            receive_frame(theirs, Deadline(120), HUGE)


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
