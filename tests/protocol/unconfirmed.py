"""Conclusions and sums with the defence off: a word that one holder alone says counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from opfl_chain.protocol import audit_exchange, sums
from opfl_chain.protocol.audit_exchange import Answers, Conclusion, ReportRow, Row
from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.sums import AgreedSum, Stated
from opfl_chain.protocol.verdict import Outcome


def conclude(rows: Mapping[int, Row], answers: Mapping[int, Answers], **more: Any) -> Conclusion:
    """Conclude from all words, though another holder was away."""
    found = audit_exchange.conclude(rows, answers, **more)
    if found.outcome is not None or found.disputes:
        return found
    words: dict[int, Answer] = {}
    for seat, each in answers.items():
        if rows.get(seat) == ReportRow(each.commitment):
            words.update(each.by_component())
    if len(words) < COMPONENTS:
        return found
    accepted = accepts([words[index] for index in range(COMPONENTS)])
    return replace(found, outcome=Outcome.PASSED if accepted else Outcome.OUTSIDE)


def agree(parts: Mapping[int, Stated], judged: Mapping[int, bytes] | None = None) -> AgreedSum:
    """Agree on what a holder states, though another one was away."""
    found = sums.agree(parts, judged)
    for index in found.unconfirmed:
        for seat, stated in parts.items():
            if index in held_indices(seat):
                found.hashes[index] = stated[held_indices(seat).index(index)]
    return replace(found, unconfirmed=())
