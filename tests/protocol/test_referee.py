"""Hand-overs to referees and results of meetings, as docs/SPEC.md has them."""

from __future__ import annotations

import protocol_vectors as vectors
import pytest
from protocol_vectors import columns

from opfl_chain.protocol.bundle import Bundle
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import Expected
from opfl_chain.protocol.errors import DoesNotOpen, MessageError
from opfl_chain.protocol.handed_keys import decode_handed_keys, encode_handed_keys
from opfl_chain.protocol.meeting import Results, agreed_results
from opfl_chain.protocol.referee import HandOver, agreed_wanted
from opfl_chain.protocol.sealing import SealingKey
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.unsealing import body_key, open_contribution, open_gradient_component

REFEREE = vectors.load("referee")
BUNDLE = vectors.load("bundle")


def test_a_key_opens_the_component_that_it_is_for() -> None:
    expected = Expected(Scheme.SHARES, 0, BUNDLE["gradientWords"], BUNDLE["inputWords"])
    bundle = Bundle.decode(REFEREE["bundle"], Limits.of(BundleKind.CONTRIBUTION, expected))
    here = BUNDLE["cases"][0]["context"]
    for seat, (secret, keys) in enumerate(
        zip(BUNDLE["sealingSecrets"], REFEREE["bodyKeys"], strict=True)
    ):
        sealing = SealingKey(secret)
        held = open_contribution(bundle, seat, sealing, here, expected).held
        for part, component, key in zip(held, held_indices(seat), keys, strict=True):
            assert body_key(bundle, component, seat, sealing, here) == key
            assert open_gradient_component(bundle, component, key, expected) == part
            with pytest.raises(DoesNotOpen):
                open_gradient_component(bundle, (component + 1) % 3, key, expected)


def test_hand_overs() -> None:
    handed = [HandOver.decode(data, REFEREE["most"]) for data in REFEREE["handOvers"]]
    assert [each.encode() for each in handed] == REFEREE["handOvers"]
    names = "wantedClients", "wantedComponents", "wantedContributions", "wantedAnswers"
    found = [
        (each.client, each.component, each.contribution, each.answer)
        for each in agreed_wanted(handed)
    ]
    assert found == columns(REFEREE, *names)
    with pytest.raises(MessageError, match="at most 1 clients"):
        HandOver.decode(REFEREE["handOvers"][0], 1)


def test_handed_keys() -> None:
    for message in REFEREE["handedKeys"]:
        keys = decode_handed_keys(message)
        assert encode_handed_keys(keys) == message and len(message) == 70 * len(keys)
    for malformed in REFEREE["handedKeysMalformed"]:
        with pytest.raises(MessageError, match=r"handed key|cannot be keys"):
            decode_handed_keys(malformed)


def test_results_of_meetings() -> None:
    for said, agreed in columns(REFEREE, "results", "resultsAgreed"):
        read = [Results.decode(body) for body in said]
        assert [each.encode() if each else Results.ABORTED for each in read] == said
        found = agreed_results(dict(enumerate(said)))
        assert (Results(found).encode() if found is not None else Results.ABORTED) == agreed


def test_one_member_does_not_make_the_results_of_a_meeting() -> None:
    lie = Results(frozenset({1, 2})).encode()
    for honest in (Results(frozenset({1})).encode(), Results.ABORTED):
        found = agreed_results({0: honest, 1: honest, 2: lie})
        assert found == (None if honest == Results.ABORTED else {1})
    assert agreed_results({0: None, 1: b"nonsense", 2: lie}) is None
