"""Our errors quote peers' text in readable form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opfl_chain.mpc.session.agreement import Agreement
from opfl_chain.mpc.session.errors import ProgramMismatch
from opfl_chain.mpc.session.heartbeat import complaint_in
from opfl_chain.transport.errors import LONGEST, shown

STRANGE = "\ud800\n\0\N{RIGHT-TO-LEFT OVERRIDE}"


@given(st.text(st.characters()), st.integers(3, 40))
def test_shown_text_is_short_and_printable(text: str, longest: int) -> None:
    result = shown(text, longest)
    assert len(result) <= longest
    assert result.isprintable()
    assert shown(result, longest) == result


@pytest.mark.parametrize("text", ["", "it stopped: é", "x" * LONGEST])
def test_printable_text_is_unchanged(text: str) -> None:
    assert shown(text) == text


def test_unprintable_text_is_escaped() -> None:
    assert shown(STRANGE) == r"\ud800\n\x00\u202e"


def test_a_complaint_is_cut_and_escaped() -> None:
    assert complaint_in({"left": "the disk is full"}) == "the disk is full"
    assert complaint_in({"left": STRANGE}) == shown(STRANGE)
    assert len(complaint_in({"left": "x" * 60_000}) or "") == LONGEST
    assert complaint_in({"left": [["x"]]}) == "it gave no readable reason"
    for nothing in ({}, {"left": None}, {"pulse": True}):
        assert complaint_in(nothing) is None


def test_an_agreement_is_cut_and_escaped() -> None:
    theirs = Agreement(STRANGE + "x" * 1_000_000, STRANGE, STRANGE)
    with pytest.raises(ProgramMismatch) as caught:
        Agreement("program", "c0de").compare(1, "host:1", theirs.to_bytes())
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < LONGEST
