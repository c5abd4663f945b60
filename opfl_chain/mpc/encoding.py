"""Between numbers and ring words, and between words and three members' shares of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

import numpy as np

from opfl_chain.mpc.errors import CopiesDiffer, ShareInvalid
from opfl_chain.mpc.ranks import MEMBERS, Rank, holders_of
from opfl_chain.mpc.shares import DTYPES, PUBLIC, Share, Storage, Words, arithmetic_share
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.fixed_point import FixedPoint


def encode(array: Words, fraction_bits: int, name: str = "array") -> Words:
    """Ring words of an array; reals as the protocol encodes them, so that SPU does not round."""
    if str(array.dtype) not in DTYPES:
        raise ShareInvalid(f"{name} has dtype {array.dtype}, it must be one of {', '.join(DTYPES)}")
    if array.dtype.kind != "f":
        return array.astype("<i8").view("<u8")
    if not array.size:
        return np.zeros(array.shape, "<u8")
    try:
        words = FixedPoint(fraction_bits).encode_array(name, array)
    except ProtocolError as error:
        raise ShareInvalid(str(error)) from error
    return words.view("<u8").reshape(array.shape)


def decode(words: Words, dtype: str, fraction_bits: int) -> Words:
    """The numbers that ring words stand for."""
    if dtype == "bool":
        return (words & np.uint64(1)).astype(bool)
    signed = words.astype("<u8", copy=False).view("<i8")
    if np.dtype(dtype).kind == "f":
        return (signed / 2.0**fraction_bits).astype(dtype)
    return signed.astype(dtype)


def public_share(rank: Rank, array: Words, fraction_bits: int, name: str = "array") -> Share:
    """What every member passes for a public input."""
    words = encode(array, fraction_bits, name)
    return Share(rank, str(array.dtype), array.shape, Storage(PUBLIC), words)


def split(
    array: Words, fraction_bits: int, random: Callable[[int], bytes] = secrets.token_bytes
) -> tuple[Share, Share, Share]:
    """The three members' shares of an array, for tests and benches."""
    words = encode(array, fraction_bits)
    first, second = (
        np.frombuffer(random(words.nbytes), "<u8").reshape(words.shape) for _ in range(2)
    )
    components = (first, second, words - first - second)
    shares = (
        arithmetic_share(rank, components[rank], components[(rank + 1) % MEMBERS], str(array.dtype))
        for rank in range(MEMBERS)
    )
    zero, one, two = shares
    return zero, one, two


def combine(share: Share, missing: Words) -> Words:
    """Ring words of a secret from a member's share and the component that it lacks."""
    first, second = share.components
    if share.storage.is_arithmetic:
        return first + second + missing
    mask = np.uint64((1 << share.storage.bits) - 1)
    return (first ^ second ^ missing).astype("<u8") & mask


def reconstruct(shares: Sequence[Share], fraction_bits: int) -> Words:
    """The array of which these are all three shares, in order of rank."""
    kinds = {(share.dtype, share.shape, share.storage) for share in shares}
    if [share.rank for share in shares] != list(range(MEMBERS)) or len(kinds) != 1:
        raise ShareInvalid("need the shares of members 0, 1 and 2 of one array, in this order")
    if shares[0].storage.is_public:
        return decode(shares[0].words, shares[0].dtype, fraction_bits)
    for component in range(MEMBERS):
        holder, other = holders_of(component)
        if not np.array_equal(shares[holder].components[0], shares[other].components[1]):
            raise CopiesDiffer(component, (holder, other))
    words = combine(shares[0], shares[2].components[0])
    return decode(words, shares[0].dtype, fraction_bits)
