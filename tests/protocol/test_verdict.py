"""Verdicts: bitmaps of the clients that passed."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.verdict import Verdict

verdicts = st.frozensets(st.integers(0, 500)).map(Verdict.of)


@given(verdicts)
def test_encoding_round_trips(verdict):
    assert Verdict.decode(verdict.passes_bytes) == verdict


@given(verdicts, verdicts)
def test_hashes_are_equal_iff_verdicts_are(a, b):
    assert (a.hash == b.hash) == (a == b)


@given(verdicts, st.integers(0, 5))
def test_zero_bytes_at_the_end_of_passes_mean_nothing(verdict, zeros):
    assert Verdict.decode(verdict.passes_bytes + bytes(zeros)) == verdict


@given(verdicts)
def test_passes_have_no_zero_byte_at_the_end(verdict):
    assert not verdict.passes_bytes.endswith(b"\x00")


@given(st.binary(max_size=40))
def test_any_bytes_are_a_bitmap(passes):
    assert Verdict.decode(passes).passes_bytes == passes.rstrip(b"\x00")


def test_decoded_passes_are_a_set_like_any_other():
    passed = Verdict.decode(b"\x05\x80\x00").passed
    assert passed == frozenset({0, 2, 15})
    assert frozenset({0, 2, 15}) == passed
    assert hash(passed) == hash(frozenset({0, 2, 15}))
    assert (len(passed), sorted(passed), passed & {2, 3}) == (3, [0, 2, 15], {2})
    assert not {1, 24, -1, "0"} & passed


def test_decoding_takes_little_more_memory_than_what_is_decoded():
    bitmap = b"\xff" * (1 << 14)
    tracemalloc.start()
    try:
        Verdict.decode(bitmap)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(bitmap)
    finally:
        tracemalloc.stop()


def test_bits_are_lowest_first():
    assert Verdict.of({0, 9}).passes_bytes == b"\x01\x02"


@pytest.mark.parametrize("index", [-1, 2**32])
def test_client_index_out_of_range_is_refused(index):
    with pytest.raises(ProtocolError, match=f"client index is {index}"):
        Verdict.of({index})
