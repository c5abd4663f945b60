import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.protocol.errors import ProtocolError, VerdictError
from opfl_chain.protocol.verdict import Fault, FaultReason, Verdict

clients = st.integers(0, 500)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    passed = draw(st.frozensets(clients))
    faults = draw(st.dictionaries(clients, st.sampled_from(FaultReason)))
    return Verdict.of(passed, {i: reason for i, reason in faults.items() if i not in passed})


@given(verdicts())
def test_encoding_round_trips(verdict):
    assert Verdict.decode(verdict.passes_bytes, verdict.faults_bytes) == verdict


@given(verdicts(), verdicts())
def test_hashes_are_equal_iff_verdicts_are(a, b):
    assert (a.hash == b.hash) == (a == b)


@given(verdicts(), st.integers(0, 5))
def test_zero_bytes_at_the_end_of_passes_mean_nothing(verdict, zeros):
    assert Verdict.decode(verdict.passes_bytes + bytes(zeros), verdict.faults_bytes) == verdict


@given(verdicts())
def test_passes_have_no_zero_byte_at_the_end(verdict):
    assert not verdict.passes_bytes.endswith(b"\x00")


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_decoding_refuses_or_reads_back_the_same_faults(passes, faults):
    try:
        verdict = Verdict.decode(passes, faults)
    except VerdictError:
        return
    assert verdict.faults_bytes == faults
    assert verdict.passes_bytes == passes.rstrip(b"\x00")


def test_decoded_passes_are_a_set_like_any_other():
    passed = Verdict.decode(b"\x05\x80\x00", b"").passed
    assert passed == frozenset({0, 2, 15})
    assert frozenset({0, 2, 15}) == passed
    assert hash(passed) == hash(frozenset({0, 2, 15}))
    assert (len(passed), sorted(passed), passed & {2, 3}) == (3, [0, 2, 15], {2})
    assert not {1, 24, -1, "0"} & passed


def test_decoding_takes_little_more_memory_than_what_is_decoded():
    bitmap = b"\xff" * (1 << 14)
    tracemalloc.start()
    try:
        Verdict.decode(bitmap, b"")
        assert tracemalloc.get_traced_memory()[1] < 4 * len(bitmap)
    finally:
        tracemalloc.stop()


def test_bits_are_lowest_first():
    assert Verdict.of(frozenset({0, 9}), {}).passes_bytes == b"\x01\x02"


def test_faults_are_sorted_by_client():
    faults = {300: FaultReason.REPLAY_OUTSIDE, 2: FaultReason.NOT_DELIVERED}
    encoded = Verdict.of(frozenset(), faults).faults_bytes
    assert encoded == bytes.fromhex("00000002020000012c04")


@pytest.mark.parametrize(
    ("passes", "faults", "message"),
    [
        ("", "00000001", "faults have 4 bytes, expected a multiple of 5"),
        ("", "0000000700", "client 7 has fault reason 0; known: 1 commitment_mismatch"),
        ("", "0000000705", "client 7 has fault reason 5"),
        ("", "00000002010000000101", "1 follows 2"),
        ("", "00000001010000000102", "1 follows 1"),
        ("02", "0000000104", "client 1 passed and is at fault .replay_outside."),
    ],
)
def test_malformed_verdict_is_refused(passes, faults, message):
    with pytest.raises(VerdictError, match=message):
        Verdict.decode(bytes.fromhex(passes), bytes.fromhex(faults))


@pytest.mark.parametrize("index", [-1, 2**32])
def test_client_index_out_of_range_is_refused(index):
    with pytest.raises(ProtocolError, match=f"client index is {index}"):
        Verdict.of(frozenset({index}), {})
    with pytest.raises(ProtocolError, match=f"client index is {index}"):
        Verdict(frozenset(), (Fault(index, FaultReason.NOT_DELIVERED),))
