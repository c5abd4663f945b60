"""Bundles: what members open, what they complain about, and what is refused unread."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bundles import (
    KEYS,
    PUBLIC,
    SEED,
    answer,
    contribution,
    dataset,
    expected_in,
    gradient,
    made_answer,
    made_context,
    proof,
    training_input,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_vectors import ring_arrays
from protocol_vectors import words as words32

from opfl_chain.protocol.bundle import Bundle, check_bundle, contribution_parts, seal
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.delivery import Claim, Delivery, Expected, check_delivery
from opfl_chain.protocol.errors import BundleError, DoesNotOpen
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.sealing import derived_key, file_complaint
from opfl_chain.protocol.shares import commit, held_indices, holders_of
from opfl_chain.protocol.unsealing import (
    answer_with_keys,
    body_key,
    complain,
    complaint_stands,
    contribution_with_keys,
    open_answer,
    open_contribution,
)

CONTRIBUTION, ANSWER = BundleKind.CONTRIBUTION, BundleKind.ANSWER
SCHEMES = list(Scheme)
EXTRAS = ["", "advice", "proof"]


def spoilt_envelope(bundle: Bundle, number: int) -> Bundle:
    envelopes = list(bundle.envelopes)
    envelopes[number] = bytes(32)
    return replace(bundle, envelopes=tuple(envelopes))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seat", range(3))
def test_a_contribution_opens_to_the_packages_of_each_seat(scheme: Scheme, seat: int) -> None:
    bundle, expected = contribution(scheme), expected_in(scheme)
    check_bundle(bundle, made_context(CONTRIBUTION), expected)
    opened = open_contribution(bundle, seat, KEYS[seat], made_context(CONTRIBUTION), expected)
    assert opened == gradient(scheme).packages[seat]


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("seat", range(3))
def test_an_answer_opens_to_a_delivery_that_is_checked(extra: str, seat: int) -> None:
    bundle, expected = answer(extra=extra), expected_in(Scheme.SHARES, extra, seat)
    check_bundle(bundle, made_context(ANSWER), expected)
    given, advice, proved = open_answer(bundle, seat, KEYS[seat], made_context(ANSWER), expected)
    root, path = dataset(training_input())
    assert (given.package, given.proof) == (training_input().packages[seat], path)
    assert proved == (proof()[seat] if extra == "proof" else None)
    claim = Claim(ClientIndex(4), RoundNumber(2), gradient().commitment, root, True)
    delivery = Delivery(gradient().packages[seat], given, advice, proved)
    assert check_delivery(expected, claim, delivery).proof == proved


@pytest.mark.parametrize("extra", EXTRAS)
def test_bundles_are_read_as_they_were_written(extra: str) -> None:
    expected = expected_in(Scheme.SHARES, extra)
    for bundle in (contribution(), answer(extra=extra)):
        limits = Limits.of(bundle.kind, expected)
        assert Bundle.decode(bundle.encode(), limits) == bundle
        assert len(bundle.encode()) <= limits.largest
        with pytest.raises(BundleError):
            Bundle.decode(bundle.encode() + b"\0", limits)
        with pytest.raises(BundleError):
            Bundle.decode(bundle.encode()[:-1], limits)


def test_the_same_content_yields_the_same_bytes_and_another_one_other_keys() -> None:
    kind, here = CONTRIBUTION, made_context(CONTRIBUTION)
    first, again = contribution(), contribution()
    assert first.encode() == again.encode()
    other = seal(kind, here, contribution_parts(gradient(seed=2)), PUBLIC, SEED)
    elsewhere = contribution(client="0x" + "c2" * 20)
    assert len({first.ephemeral, other.ephemeral, elsewhere.ephemeral}) == 3
    assert not set(first.envelopes) & set(other.envelopes) | set(first.envelopes) & set(
        elsewhere.envelopes
    )


@pytest.mark.parametrize("number", range(6))
def test_a_complaint_about_a_bad_envelope_stands(number: int) -> None:
    bundle, here = spoilt_envelope(contribution(), number), made_context(CONTRIBUTION)
    expected = expected_in(Scheme.SHARES)
    standing = []
    for seat, key in enumerate(KEYS):
        complaint = complain(bundle, seat, key, here)
        if complaint_stands(bundle, key.public, complaint, here, expected):
            standing.append(seat)
            with pytest.raises(DoesNotOpen):
                open_contribution(bundle, seat, key, here, expected)
    assert standing == [[0], [2], [0], [1], [1], [2]][number]


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("component", range(3))
def test_a_complaint_about_a_bad_body_stands_for_both_holders(extra: str, component: int) -> None:
    bundle, here = answer(extra=extra), made_context(ANSWER)
    bodies = list(bundle.bodies)
    bodies[component] = bodies[component][:-1] + bytes([bodies[component][-1] ^ 1])
    bundle = replace(bundle, bodies=tuple(bodies))
    expected = expected_in(Scheme.SHARES, extra)
    standing = [
        seat
        for seat, key in enumerate(KEYS)
        if complaint_stands(bundle, key.public, complain(bundle, seat, key, here), here, expected)
    ]
    assert standing == [[0, 2], [0, 1], [1, 2]][component]


@pytest.mark.parametrize("extra", EXTRAS)
def test_no_complaint_about_a_good_bundle_stands(extra: str) -> None:
    for bundle in (contribution(), answer(extra=extra)):
        here = made_context(bundle.kind)
        for seat, key in enumerate(KEYS):
            complaint = complain(bundle, seat, key, here)
            expected = expected_in(Scheme.SHARES, extra)
            assert not complaint_stands(bundle, key.public, complaint, here, expected)


def test_a_complaint_with_another_shared_point_does_not_stand() -> None:
    """A liar shows a point that does not open the good bundle, as if it were the right one."""
    bundle, here = contribution(), made_context(CONTRIBUTION)
    expected = expected_in(Scheme.SHARES)
    liar = derived_key(b"l" * 32, b"made up")
    forged = file_complaint(liar, 1, bundle.ephemeral, here)
    assert not complaint_stands(bundle, KEYS[1].public, forged, here, expected)
    assert complaint_stands(
        bundle, liar.public, forged, here, expected
    )  # the proof is all it lacks


def test_a_copied_ephemeral_key_is_refused() -> None:
    """A client copies another's key, so that the complaint about it opens the other's envelopes."""
    here, expected = made_context(CONTRIBUTION), expected_in(Scheme.SHARES)
    victim, attacker = contribution(), "0x" + "c2" * 20
    there = made_context(CONTRIBUTION, attacker)
    copied = replace(contribution(client=attacker), ephemeral=victim.ephemeral)
    for knowledge in (copied.knowledge, victim.knowledge):
        with pytest.raises(BundleError, match="ephemeral"):
            check_bundle(replace(copied, knowledge=knowledge), there, expected)
    complaint = complain(copied, 1, KEYS[1], there)  # without the check, the member complains
    assert complaint_stands(copied, KEYS[1].public, complaint, there, expected)
    assert complaint.shared_point == KEYS[1].shared_point(victim.ephemeral)
    check_bundle(victim, here, expected)


def test_a_proof_of_knowledge_for_another_kind_is_refused() -> None:
    bundle, expected = contribution(), expected_in(Scheme.SHARES)
    with pytest.raises(BundleError, match="ephemeral"):
        check_bundle(bundle, made_context(ANSWER), expected)


def test_leaf_hashes_of_another_commitment_are_refused() -> None:
    bundle = replace(contribution(), commitment=gradient(seed=2).commitment)
    with pytest.raises(BundleError, match="commitment"):
        check_bundle(bundle, made_context(CONTRIBUTION), expected_in(Scheme.SHARES))
    check_bundle(bundle, made_context(CONTRIBUTION), expected_in(Scheme.MPC))  # opened inside MPC


def test_a_member_without_a_valid_sealing_key_harms_itself_alone() -> None:
    here, expected = made_context(CONTRIBUTION), expected_in(Scheme.SHARES)
    keys = [PUBLIC[0], b"\2" + b"\5" * 32, PUBLIC[2]]
    bundle = seal(CONTRIBUTION, here, contribution_parts(gradient()), keys, SEED)
    for seat in (0, 2):
        open_contribution(bundle, seat, KEYS[seat], here, expected)
    complaint = complain(bundle, 1, KEYS[1], here)
    assert not complaint_stands(bundle, keys[1], complaint, here, expected)


def test_words_that_are_not_canonical_do_not_open() -> None:
    """The holder of a proof's words sees them; the others believe its complaint."""
    parts, here = made_answer(extra="proof"), made_context(ANSWER)
    expected = expected_in(Scheme.SHARES, "proof")
    good = proof()[1].held[1].sent
    bad = good[:-16] + b"\xff" * 16
    component = replace(proof()[1].held[1], sent=bad)
    leaves = list(proof()[1].leaves.hashes)
    for place, leaf in component.leaf_hashes(expected.proof).items():
        leaves[place] = leaf
    public = parts.public[: -32 * len(leaves)] + b"".join(leaves)
    texts = (*parts.plaintexts[:2], parts.plaintexts[2].replace(good, bad))
    bundle = seal(ANSWER, here, replace(parts, public=public, plaintexts=texts), PUBLIC, SEED)
    stands = [
        complaint_stands(bundle, key.public, complain(bundle, seat, key, here), here, expected)
        for seat, key in enumerate(KEYS)
    ]
    assert stands == [False, True, True]


@settings(max_examples=25)
@given(ring_arrays, words32, words32, st.sampled_from(list(Scheme)))
def test_any_gradient_is_opened_by_its_holders(words, entropy, seed, scheme) -> None:
    committed = commit(scheme, Subject.GRADIENT, words, entropy)
    expected, here = Expected(scheme, 0, words.size, 1), made_context(CONTRIBUTION)
    sealed = seal(CONTRIBUTION, here, contribution_parts(committed), PUBLIC, seed)
    bundle = Bundle.decode(sealed.encode(), Limits.of(CONTRIBUTION, expected))
    check_bundle(bundle, here, expected)
    opened = [open_contribution(bundle, s, key, here, expected) for s, key in enumerate(KEYS)]
    assert opened == list(committed.packages)


@pytest.mark.parametrize("seat", range(3))
def test_a_seat_opens_nothing_that_is_sealed_to_others(seat: int) -> None:
    """With its own key a member opens its two components, and neither of them in another seat."""
    bundle, expected = contribution(), expected_in(Scheme.SHARES)
    for other in range(3):
        if other != seat:
            with pytest.raises(DoesNotOpen):
                open_contribution(bundle, other, KEYS[seat], made_context(CONTRIBUTION), expected)


def test_a_bundle_does_not_open_in_another_context() -> None:
    bundle, expected = contribution(), expected_in(Scheme.SHARES)
    with pytest.raises(DoesNotOpen):
        open_contribution(bundle, 0, KEYS[0], made_context(ANSWER), expected)


def test_sizes_that_are_announced_are_compared_before_anything_is_read() -> None:
    limits = Limits.of(CONTRIBUTION, expected_in(Scheme.SHARES))
    data = contribution().encode()
    for at, size in ((6, 4), (10, 8), (18, 8), (26, 8)):
        with pytest.raises(BundleError, match="bytes"):
            Bundle.decode(data[:at] + b"\xff" * size + data[at + size :], limits)


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("seat", range(3))
def test_a_newcomer_opens_what_its_seat_held_with_the_keys_of_the_others(
    seat: int, extra: str
) -> None:
    """Each component of a seat has another holder, which hands its key over."""
    expected = expected_in(Scheme.SHARES, extra)
    given, asked = contribution(), answer(extra=extra)

    def handed(bundle: Bundle) -> tuple[bytes, bytes]:
        first, second = (
            body_key(bundle, k, other, KEYS[other], made_context(bundle.kind))
            for k in held_indices(seat)
            for other in holders_of(k)
            if other != seat
        )
        return first, second

    here = made_context(CONTRIBUTION), made_context(ANSWER)
    found = contribution_with_keys(given, seat, handed(given), expected)
    assert found == open_contribution(given, seat, KEYS[seat], here[0], expected)
    opened = answer_with_keys(asked, seat, handed(asked), expected)
    assert opened == open_answer(asked, seat, KEYS[seat], here[1], expected)
    with pytest.raises(DoesNotOpen):
        contribution_with_keys(given, seat, (bytes(32), handed(given)[1]), expected)
