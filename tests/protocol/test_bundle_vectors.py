"""Sealing, bundles, echoes and lists against the vectors of docs/SPEC.md."""

from __future__ import annotations

from typing import Any

import protocol_vectors as vectors
import pytest
from protocol_vectors import columns

from opfl_chain.protocol.bundle import Bundle, Parts, check_bundle, context, seal
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import Expected
from opfl_chain.protocol.echo import (
    Echo,
    Signed,
    Slot,
    common,
    heard_in,
    lacking_seats,
    slot_number,
)
from opfl_chain.protocol.errors import BundleError, ProtocolError, SealingError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import round_id_of
from opfl_chain.protocol.roll import Complaints, Listed, candidates, exclude
from opfl_chain.protocol.sealing import (
    Complaint,
    SealingKey,
    envelope_key,
    file_complaint,
    knows_secret,
    prove_knowledge,
    verify_complaint,
)
from opfl_chain.protocol.shares import SharePackage, held_indices, holders_of
from opfl_chain.protocol.statements import SigningDomain
from opfl_chain.protocol.unsealing import complain, complaint_stands, open_answer, open_contribution

BUNDLE = vectors.load("bundle")
SEALING = vectors.load("sealing")
LISTS = vectors.load("lists")
KEYS = [SealingKey(secret) for secret in BUNDLE["sealingSecrets"]]


def test_keys_and_envelopes() -> None:
    ephemeral = SealingKey(SEALING["ephemeralSecret"])
    assert ephemeral.public == SEALING["ephemeral"]
    for seat, (secret, public, shared, masks) in enumerate(
        columns(SEALING, "secretKeys", "publicKeys", "sharedPoints", "envelopeKeys")
    ):
        key = SealingKey(secret)
        assert key.public == public
        assert key.shared_point(ephemeral.public) == ephemeral.shared_point(public) == shared
        found = [
            envelope_key(shared, ephemeral.public, k, seat, SEALING["context"])
            for k in held_indices(seat)
        ]
        assert found == masks


def test_proofs_of_knowledge() -> None:
    ephemeral, here = SealingKey(SEALING["ephemeralSecret"]), SEALING["context"]
    assert prove_knowledge(ephemeral, here) == SEALING["knowledge"]
    assert knows_secret(ephemeral.public, SEALING["knowledge"], here)
    for proof, why in columns(SEALING, "wrongKnowledge", "wrongKnowledgeWhy"):
        assert not knows_secret(ephemeral.public, proof, here), why


def test_complaints() -> None:
    ephemeral, here, keys = SEALING["ephemeral"], SEALING["context"], SEALING["publicKeys"]
    for seat, (secret, data) in enumerate(columns(SEALING, "secretKeys", "complaints")):
        complaint = file_complaint(SealingKey(secret), seat, ephemeral, here)
        assert complaint.encode() == data
        assert Complaint.decode(data) == complaint
        assert verify_complaint(complaint, keys[seat], ephemeral, here)
    for data, why in columns(SEALING, "forged", "forgedWhy"):
        forged = Complaint.decode(data)
        assert not verify_complaint(forged, keys[SEALING["forgedSeat"]], ephemeral, here), why
    for data, why in columns(SEALING, "malformed", "malformedWhy"):
        with pytest.raises(SealingError):
            Complaint.decode(data)
            pytest.fail(f"accepted: {why}")


def expected_in(case: dict[str, Any]) -> Expected:
    advice = BUNDLE["adviceWords"] if case["guided"] else 0
    return Expected(
        Scheme(case["scheme"]), 0, BUNDLE["gradientWords"], BUNDLE["inputWords"], advice
    )


def texts_of(package: SharePackage) -> list[bytes]:
    return [part.salt + part.sent for part in package.held]


@pytest.mark.parametrize("case", BUNDLE["cases"], ids=lambda case: case["kind"])
def test_bundles(case: dict[str, Any]) -> None:
    domain = SigningDomain(BUNDLE["chainId"], BUNDLE["verifyingContract"])
    kind, expected = BundleKind[case["kind"].upper()], expected_in(case)
    round_id = round_id_of(BUNDLE["job"], BUNDLE["round"])
    (client,) = BUNDLE["clients"]
    here = context(domain.separator, round_id, BUNDLE["opening"], client, kind)
    assert here == case["context"]
    bundle = Bundle.decode(case["data"], Limits.of(kind, expected))
    assert bundle.encode() == case["data"]
    assert (bundle.commitment, bundle.public) == (case["commitment"], case["public"])
    assert (bundle.rest_hash, bundle.content_hash) == (case["restHash"], case["contentHash"])
    check_bundle(bundle, here, expected)
    texts: dict[int, bytes] = {}
    for seat, key in enumerate(KEYS):
        if kind is BundleKind.CONTRIBUTION:
            found = texts_of(open_contribution(bundle, seat, key, here, expected))
        else:
            given, advice, _ = open_answer(bundle, seat, key, here, expected)
            nodes = case["public"][0]
            assert list(given.proof) == BUNDLE["path"][:nodes]
            more = texts_of(advice) if advice else [b"", b""]
            found = [a + b for a, b in zip(texts_of(given.package), more, strict=True)]
        assert found == case["texts"][seat]
        texts.update(zip(held_indices(seat), found, strict=True))
    parts = Parts(bundle.commitment, bundle.public, (texts[0], texts[1], texts[2]))
    assert seal(kind, here, parts, BUNDLE["sealingKeys"], BUNDLE["seed"]) == bundle


def test_complaints_about_bundles() -> None:
    good = BUNDLE["cases"][0]
    expected, here = expected_in(good), good["context"]
    limits = Limits.of(BundleKind.CONTRIBUTION, expected)
    for case in BUNDLE["complained"]:
        bundle = Bundle.decode(case["data"], limits)
        for seat, (data, stands) in enumerate(columns(case, "complaints", "stand")):
            complaint = complain(bundle, seat, KEYS[seat], here)
            assert complaint.encode() == data
            key = BUNDLE["sealingKeys"][seat]
            assert complaint_stands(bundle, key, complaint, here, expected) is stands
    assert [holders_of(k) for k in range(3)] == [(0, 2), (0, 1), (1, 2)]


def test_malformed_bundles_are_refused() -> None:
    limits = Limits.of(BundleKind.CONTRIBUTION, expected_in(BUNDLE["cases"][0]))
    for data, why in columns(BUNDLE, "malformed", "malformedWhy"):
        with pytest.raises(BundleError):
            Bundle.decode(data, limits)
            pytest.fail(f"accepted: {why}")


ECHO = vectors.load("echo")


@pytest.mark.parametrize(
    "case", ECHO["cases"] + ECHO["boundCases"], ids=lambda case: f"{case['why']}"
)
def test_echoes(case: dict[str, Any]) -> None:
    echoes = {seat: Echo.decode(data) for seat, data in columns(case, "echoSeats", "echoes")}
    assert [echo.encode() for echo in echoes.values()] == case["echoes"]
    signed = {
        (author, each.hash): each
        for author, bodies in enumerate(case["shown"])
        for each in (Signed(body, b"signature") for body in bodies)
    }
    own_seat, bound = case["ownSeat"], None
    if "fitting" in case:
        bound = {seat: body.__eq__ for seat, body in enumerate(case["fitting"]) if body}
        bodies = {keccak256(body): body for each in case["shown"] for body in each}
        named = {seat: echoes[own_seat].of_author(seat) for seat in bound if seat != own_seat}
        heard = {seat: bodies[each] for seat, each in named.items() if each is not None}
        assert (not lacking_seats(own_seat, heard, bound)) == case["endsEarly"]
    found = common(own_seat, case["own"] or None, echoes, signed, bound)
    assert [found.values[seat] or b"" for seat in range(3)] == case["said"]
    assert sorted(found.equivocators) == case["equivocators"]
    assert list(found.absent) == case["absent"]


def test_message_that_counts_as_heard() -> None:
    bound = {2: ECHO["keptFitting"].__eq__}
    for messages, heard in columns(ECHO, "keptMessages", "keptHeard"):
        kept = {1: [], 2: [Signed(each, b"signature") for each in messages]}
        assert heard_in(kept, bound) == {2: heard}
        assert heard_in(kept) == {2: messages[0]}


def test_slots() -> None:
    names = dict(columns(ECHO, "slotNames", "slots"))
    assert [int(slot) for slot in Slot] == list(names.values())
    assert [slot_number(slot, 3) for slot in Slot] == ECHO["slotsOfAttempt3"]


def test_lists() -> None:
    lists = [Listed.decode(data, LISTS["most"]) for data in LISTS["encoded"]]
    rows = columns(LISTS, "listedClients", "listedHashes", "encoded")
    for each, (clients, hashes, data) in zip(lists, rows, strict=True):
        assert each.hashes == dict(zip(clients, hashes, strict=True))
        assert each.encode() == data
    found = candidates(lists)
    assert found == dict(columns(LISTS, "candidateClients", "candidateHashes"))
    standing = columns(LISTS, "standingClients", "standingHashes")
    assert exclude(found, standing) == dict(columns(LISTS, "leftClients", "leftHashes"))
    for data, why in columns(LISTS, "malformed", "malformedWhy"):
        with pytest.raises(ProtocolError):
            Listed.decode(data, LISTS["most"])
            pytest.fail(f"accepted: {why}")


def test_filed_complaints() -> None:
    seat, data = LISTS["complaintSeat"], LISTS["complaints"]
    filed = Complaints.decode(data, seat, 2)
    assert sorted(filed.filed) == [1, 4]
    assert filed.encode() == data
    for wrong in (seat + 1, seat - 1):
        with pytest.raises(ProtocolError, match="in the name of member 1"):
            Complaints.decode(data, wrong, 2)
    with pytest.raises(ProtocolError, match="at most 1"):
        Complaints.decode(data, seat, 1)
