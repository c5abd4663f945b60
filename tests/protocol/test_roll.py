"""Rolls, and the lists and complaints by which members agree on them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_vectors import addresses, words

from opfl_chain.protocol.errors import MessageError, ProtocolError, RollError
from opfl_chain.protocol.hashing import verify_proof
from opfl_chain.protocol.roll import (
    Complaints,
    Listed,
    Roll,
    RollEntry,
    candidates,
    decode_pairs,
    exclude,
)
from opfl_chain.protocol.sealing import derived_key, file_complaint

A, B = b"a" * 32, b"b" * 32
indices = st.integers(0, 2**32 - 1)
lists = st.dictionaries(indices, words, max_size=8).map(Listed)
rolls = st.dictionaries(indices, st.tuples(addresses, words, words), min_size=1, max_size=9)


@given(lists)
def test_lists_are_read_as_they_were_written(listed: Listed) -> None:
    assert Listed.decode(listed.encode(), len(listed.hashes)) == listed
    if listed.hashes:
        with pytest.raises(MessageError, match="at most"):
            Listed.decode(listed.encode(), len(listed.hashes) - 1)


@given(st.binary(max_size=200))
def test_a_list_is_read_back_or_refused(data: bytes) -> None:
    try:
        listed = Listed.decode(data, 10)
    except ProtocolError:
        return
    assert listed.encode() == data


@given(rolls)
def test_every_entry_is_proved_by_the_root(entries: dict) -> None:
    roll = Roll.of(RollEntry(index, *rest) for index, rest in entries.items())
    assert [entry.client for entry in roll.entries] == sorted(entries)
    for entry in roll.entries:
        assert verify_proof(roll.proof(entry.client), roll.root, entry.leaf)
    assert decode_pairs(roll.pairs) == [(i, entries[i][1]) for i in sorted(entries)]


def test_a_roll_is_in_order_and_not_empty() -> None:
    entries = [RollEntry(index, "0x" + "11" * 20, A, B) for index in (1, 2)]
    with pytest.raises(RollError, match="at least one"):
        Roll(())
    with pytest.raises(RollError, match="1 follows 2"):
        Roll((entries[1], entries[0]))
    with pytest.raises(RollError, match="1 follows 1"):
        Roll((entries[0], entries[0]))
    with pytest.raises(RollError, match="client 3 is not on the roll"):
        Roll(tuple(entries)).proof(3)


def test_malformed_pairs_are_refused() -> None:
    pairs = Roll.of(RollEntry(i, "0x" + "11" * 20, A, B) for i in (1, 2)).pairs
    with pytest.raises(RollError, match="not a multiple of 36"):
        decode_pairs(pairs[:-1])
    with pytest.raises(RollError, match="1 follows 2"):
        decode_pairs(pairs[36:] + pairs[:36])


def test_one_liar_neither_adds_nor_removes_an_honest_client() -> None:
    """Both honest members have bundle A of the client; the liar lists anything or nothing."""
    for lie in (None, Listed({}), Listed({0: A}), Listed({0: B}), Listed({0: bytes(32)})):
        said = [Listed({0: A}), Listed({0: A})] + ([lie] if lie else [])
        assert candidates(said) == {0: A}
        assert candidates(said[::-1]) == {0: A}


def test_a_candidate_is_a_bundle_that_an_honest_member_has() -> None:
    """All bundles that a client and a liar can make two honest members list."""
    choices = [{}, {0: A}, {0: B}]
    for first, second, lie in product(choices, repeat=3):
        found = candidates([Listed(first), Listed(second), Listed(lie)])
        if found:
            assert found[0] in {*first.values(), *second.values()}


def test_one_list_is_not_enough() -> None:
    """With a word of one, a liar's own invention would be a candidate that nobody can show."""
    assert candidates([Listed({}), Listed({}), Listed({0: A})]) == {}
    alone = {client: found for each in [Listed({0: A})] for client, found in each.hashes.items()}
    assert alone == {0: A}  # the defence off


def test_a_complaint_about_another_bundle_of_the_client_drops_nothing() -> None:
    assert exclude({0: A, 1: A}, [(0, B), (1, A), (2, A)]) == {0: A}


def test_complaints_are_read_as_they_were_written() -> None:
    key = derived_key(b"m" * 32, b"member")
    complaint = file_complaint(key, 2, derived_key(b"c" * 32, b"client").public, A)
    filed = Complaints({5: (A, complaint), 1: (B, complaint)})
    assert Complaints.decode(filed.encode(), 2, 2) == filed
    data = filed.encode()
    row = (len(data) - 9) // 2
    with pytest.raises(MessageError, match="1 follows 5"):
        Complaints.decode(data[:9] + data[9 + row :] + data[9 : 9 + row], 2, 2)
    with pytest.raises(MessageError, match="in the name of member 2"):
        Complaints.decode(data, 0, 2)


@given(st.binary(max_size=400))
def test_complaints_are_read_back_or_refused(data: bytes) -> None:
    try:
        filed = Complaints.decode(b"OPFC\2" + data, 0, 3)
    except ProtocolError:
        return
    assert filed.encode() == b"OPFC\2" + data
