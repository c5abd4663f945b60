"""Every decoder decodes or refuses its input, and does nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tampering import tampered
from targets import TARGETS

every_target = pytest.mark.parametrize("name", TARGETS)


@every_target
def test_valid_bytes_are_decoded(name: str) -> None:
    target = TARGETS[name]
    accepted = [target.accepts(seed) for seed in target.seeds]
    assert accepted[0]


@every_target
@settings(max_examples=60)
@given(data=st.binary(max_size=300))
def test_random_bytes_are_decoded_or_refused(name: str, data: bytes) -> None:
    TARGETS[name].accepts(data)


@every_target
@settings(max_examples=80)
@given(choice=st.data())
def test_tampered_bytes_are_decoded_or_refused(name: str, choice: st.DataObject) -> None:
    target = TARGETS[name]
    target.accepts(choice.draw(tampered(target.seeds)))


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name, target in TARGETS.items() for number in range(len(target.findings))],
)
def test_earlier_findings_are_refused(name: str, number: int) -> None:
    target = TARGETS[name]
    assert not target.accepts(target.findings[number])
