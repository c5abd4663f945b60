"""Components, shares, and libspu's shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpc_support import BITS, OPTIONS, Programs, reconstruct
from spu import Io, libspu

from opfl_chain.mpc.local import MemoryCommittee
from opfl_chain.mpc.session.errors import CopiesDiffer, ShareInvalid
from opfl_chain.mpc.session.libspu import from_spu, to_spu
from opfl_chain.mpc.session.shares import (
    ARITHMETIC,
    PUBLIC,
    Share,
    Storage,
    arithmetic_share,
    decode,
    encode,
    public_share,
    split,
)

IO = Io(3, OPTIONS.runtime_config())
ARRAYS = [
    np.array([0, 1, -1, 2**62, -(2**63), 2**63 - 1]),
    np.array([[1.5, -2.25], [0.0, 2.0**-22]], np.float32),
    np.array([1e6 + 2**-22, -(2.0**30)], np.float64),
    np.array([True, False]),
    np.array([-128, 127], np.int8),
    np.array([2**32 - 1], np.uint32),
    np.array(7),
    np.zeros((3, 0)),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_shares_made_by_hand_reconstruct_here_and_in_spu(array: np.ndarray) -> None:
    shares = split(array, BITS)
    assert np.array_equal(reconstruct(shares, BITS), array)
    if array.size:
        opened = IO.reconstruct([to_spu(share) for share in shares])
        assert np.array_equal(opened.reshape(array.shape), array)
        assert opened.dtype == array.dtype


@pytest.mark.parametrize(
    "array", [a for a in ARRAYS if a.ndim], ids=lambda a: f"{a.dtype}{a.shape}"
)
def test_shares_made_by_spu_are_read_exactly(array: np.ndarray) -> None:
    spu_shares = IO.make_shares(array, libspu.Visibility.VIS_SECRET)
    shares = [from_spu(rank, each) for rank, each in enumerate(spu_shares)]
    assert np.array_equal(reconstruct(shares, BITS), array)
    for share, original in zip(shares, spu_shares, strict=True):
        again = to_spu(share)
        assert (again.meta, again.share_chunks) == (original.meta, original.share_chunks)


def test_a_large_share_is_exact_whatever_its_chunks() -> None:
    words = np.random.default_rng(1).integers(-(2**63), 2**63, 431_080)
    for chunk_bytes in (128 << 20, 1 << 20, 1000):
        spu_shares = [to_spu(share, chunk_bytes) for share in split(words, BITS)]
        assert len(spu_shares[0].share_chunks) == -(-431_080 * 16 // chunk_bytes)
        shares = [from_spu(rank, each) for rank, each in enumerate(spu_shares)]
        assert np.array_equal(reconstruct(shares, BITS), words)
    assert np.array_equal(IO.reconstruct(spu_shares), words)


def test_components_are_the_two_of_the_rank() -> None:
    components = [np.arange(6, dtype=np.uint64).reshape(2, 3) + 10 * k for k in range(3)]
    for rank in range(3):
        share = arithmetic_share(rank, components[rank], components[(rank + 1) % 3])
        first, second = from_spu(rank, to_spu(share)).components
        assert np.array_equal(first, components[rank])
        assert np.array_equal(second, components[(rank + 1) % 3])


def test_a_program_computes_on_shares_made_by_hand(programs: Programs) -> None:
    a, b = np.array([5, -7, 2**40, 0]), np.array([3, 4, -5, 0])
    w = np.array([0.5, -1.0, 0.25, 3.0], np.float32)
    shares = {"a": split(a, BITS), "b": split(b, BITS)}
    inputs = [{"a": shares["a"][r], "b": shares["b"][r], "w": w} for r in range(3)]
    with MemoryCommittee() as committee:
        results = committee.run(programs.mixed, inputs)
    outputs = {
        name: reconstruct([result.outputs[name] for result in results], BITS)
        for name in results[0].outputs
    }
    assert np.array_equal(outputs["bit"], a > b)
    assert np.array_equal(outputs["product"], a * b)
    assert np.array_equal(outputs["bits"], b ^ 3)
    assert np.array_equal(outputs["narrow"], (a > b).astype(np.int32))
    # SPU keeps 40 integer bits in fixed point: the third overflows and is not compared.
    assert np.allclose(outputs["real"][[0, 1, 3]], (a * w)[[0, 1, 3]], atol=2**-20)
    assert np.array_equal(outputs["public"], w * 2)
    storages = {name: share.storage.name for name, share in results[0].outputs.items()}
    assert storages["product"] == ARITHMETIC
    assert storages["bit"].startswith("aby3.BShr")
    assert storages["public"] == PUBLIC


@given(st.floats(-(2.0**39), 2.0**39, width=64))
def test_reals_are_encoded_to_the_nearest_word(value: float) -> None:
    (word,) = encode(np.array([value]), BITS).view(np.int64)
    assert abs(int(word) - value * 2**BITS) <= 0.5
    assert decode(np.array([word]).view(np.uint64), "float64", BITS) == word / 2**BITS


def test_public_values_are_encoded_as_secret_ones() -> None:
    values = np.array([1.5, -2.25, 1 / 3], np.float32)
    share = public_share(0, values, BITS)
    assert np.array_equal(share.words, encode(values, BITS))
    assert np.array_equal(IO.reconstruct([to_spu(share)] * 3), decode(share.words, "float32", BITS))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**41])
def test_reals_that_do_not_fit_are_refused_by_name(value: float) -> None:
    with pytest.raises(ShareInvalid, match="weights"):
        encode(np.array([0.0, value]), BITS, "weights")


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(ShareInvalid, match="complex128"):
        encode(np.array([1j]), BITS)
    with pytest.raises(ShareInvalid, match="float32, it must be 64-bit words"):
        arithmetic_share(0, np.zeros(2, np.float32), np.zeros(2, np.float32))
    with pytest.raises(ShareInvalid, match=r"\(2,\) and \(3,\)"):
        arithmetic_share(0, np.zeros(2, np.int64), np.zeros(3, np.int64))


def test_reconstruct_finds_copies_that_differ() -> None:
    shares = list(split(np.arange(3), BITS))
    words = shares[1].words.copy()
    words[2, 1] += 1
    shares[1] = Share(1, "int64", (3,), Storage(ARITHMETIC), words)
    with pytest.raises(CopiesDiffer, match="members 2 and 1 have different copies of component 2"):
        reconstruct(shares, BITS)
    with pytest.raises(ShareInvalid, match="in this order"):
        reconstruct(shares[::-1], BITS)


@pytest.mark.parametrize(
    "storage", ["semi2k.AShr<FM64>", "aby3.AShr<FM128>", "aby3.BShr<PT_U8,9>", "", "Pub2k<FM32>"]
)
def test_other_storages_are_refused(storage: str) -> None:
    with pytest.raises(ShareInvalid, match="is not one of"):
        Share(0, "int64", (1,), Storage(storage), np.zeros((1, 2), np.uint64))


def test_words_must_fit_the_storage() -> None:
    with pytest.raises(ShareInvalid, match=r"shape \(3,\) has uint64 of shape \(3, 2\)"):
        Share(0, "int64", (3,), Storage(ARITHMETIC), np.zeros((2, 2), np.uint64))
    with pytest.raises(ShareInvalid, match="rank is 3"):
        Share(3, "int64", (1,), Storage(ARITHMETIC), np.zeros((1, 2), np.uint64))


# --- invalid shares from others


def share_with(meta: bytes, chunks: list[bytes]) -> object:
    spu_share = libspu.Share()
    spu_share.meta = meta
    spu_share.share_chunks = chunks
    return spu_share


GOOD = to_spu(split(np.arange(3), BITS)[0], chunk_bytes=20)


@given(st.binary(max_size=60), st.lists(st.binary(max_size=60), max_size=3))
def test_random_bytes_are_no_share(meta: bytes, chunks: list[bytes]) -> None:
    with pytest.raises(ShareInvalid):
        from_spu(0, share_with(meta, chunks))


@given(st.data())
def test_a_damaged_share_is_refused_or_is_another_share(data: st.DataObject) -> None:
    """One byte changed: whatever it was, the result is a share of the claimed size or an error."""
    parts = [bytearray(GOOD.meta), *map(bytearray, GOOD.share_chunks)]
    part = data.draw(st.sampled_from(parts))
    index = data.draw(st.integers(0, len(part) - 1))
    part[index] = data.draw(st.integers(0, 255))
    spu_share = share_with(bytes(parts[0]), [bytes(each) for each in parts[1:]])
    try:
        share = from_spu(0, spu_share)
    except ShareInvalid:
        return
    assert share.words.nbytes in (24, 48)


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ([], "chunks hold 0 bytes, the header says 48"),
        (GOOD.share_chunks[:2], "chunks hold 40 bytes"),
        ([GOOD.share_chunks[0], GOOD.share_chunks[2]], "starts at byte 40, .* ends at 20"),
        (GOOD.share_chunks[:1] * 2, "two chunks start at byte 0"),
    ],
)
def test_chunks_must_be_all_there_once(chunks: list[bytes], reason: str) -> None:
    with pytest.raises(ShareInvalid, match=reason):
        from_spu(0, share_with(GOOD.meta, chunks))


def test_a_huge_shape_is_refused_before_memory_is_taken() -> None:
    meta = libspu.ValueMeta()
    meta.ParseFromString(GOOD.meta)
    meta.shape = [2**40, 2**20]
    with pytest.raises(ShareInvalid, match="the header says"):
        from_spu(0, share_with(meta.SerializeToString(), GOOD.share_chunks))
