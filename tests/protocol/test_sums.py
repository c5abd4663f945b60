"""Agreement on sums, for everything that one member, or a referee, can do."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations, product

import unconfirmed

from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.sums import AgreedSum, agree

SEATS = range(3)
HASHES = {k: bytes([k + 1]) * 32 for k in SEATS}
LIES = [b"x" * 32, b"y" * 32]


def stated(seat: int, hashes: Mapping[int, bytes]) -> tuple[bytes, bytes]:
    own, following = held_indices(seat)
    return hashes[own], hashes[following]


def test_no_liar_makes_a_wrong_sum() -> None:
    for liar in SEATS:
        own, following = held_indices(liar)
        versions = product((HASHES[own], *LIES), (HASHES[following], *LIES))
        for told in [None, *versions]:
            parts = {seat: stated(seat, HASHES) for seat in SEATS if seat != liar}
            if told is not None:
                parts[liar] = told
            found = agree(parts)
            assert set(found.hashes.items()) <= set(HASHES.items())
            assert all(liar in seats for seats in found.disputes.values())
            assert found.liars == ()
            judged = agree(parts, {k: HASHES[k] for k in found.for_referee})
            assert judged.hashes == HASHES
            assert judged.liars == ((liar,) if found.disputes else ())


def test_no_bad_referee_makes_a_wrong_sum() -> None:
    parts = {seat: stated(seat, HASHES) for seat in SEATS}
    for away in (None, *SEATS):
        present = {seat: each for seat, each in parts.items() if seat != away}
        found = agree(present, dict.fromkeys(SEATS, LIES[0]))
        assert set(found.hashes.items()) <= set(HASHES.items()) and found.liars == ()
        assert (found == AgreedSum(HASHES)) == (away is None)


def test_a_sum_of_one_member_is_not_complete() -> None:
    parts = {0: stated(0, HASHES)}
    assert agree(parts) == AgreedSum({}, unconfirmed=(0, 1, 2))
    assert agree(parts, HASHES) == AgreedSum({0: HASHES[0], 1: HASHES[1]}, unconfirmed=(2,))


def test_no_liar_makes_a_wrong_sum_while_an_honest_member_is_away() -> None:
    for liar, away in permutations(SEATS, 2):
        (there,) = set(SEATS) - {liar, away}
        own, following = held_indices(liar)
        wrong = 0
        for told in product((HASHES[own], *LIES), (HASHES[following], *LIES)):
            parts = {there: stated(there, HASHES), liar: told}
            found = agree(parts)
            assert set(found.hashes.items()) <= set(HASHES.items())
            asked = {k: HASHES[k] for k in found.for_referee}
            judged = agree(parts, asked)
            assert set(judged.hashes.items()) <= set(HASHES.items())
            assert set(judged.liars) <= {liar}
            hashes = unconfirmed.agree(parts).hashes
            wrong += len(hashes) == 3 and hashes != HASHES
        assert wrong


def test_an_absent_member_stops_no_sum_that_a_standby_adds_up() -> None:
    for away in SEATS:
        parts = {seat: stated(seat, HASHES) for seat in SEATS if seat != away}
        found = agree(parts)
        assert found.for_referee == tuple(sorted(held_indices(away)))
        judged = agree(parts, {k: HASHES[k] for k in found.for_referee})
        assert judged == AgreedSum(HASHES)
