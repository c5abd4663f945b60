"""In few words: how a round ended, what was decided, what became of a slash."""

from __future__ import annotations

from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.trail.history import Slash
from opfl_chain.trail.pages.markup import Html, chip, join, text
from opfl_chain.trail.round_history import RoundHistory


def outcome_chip(round_: RoundHistory) -> Html:
    if round_.finalised is not None:
        return chip("final", "good")
    if round_.voided is not None:
        return chip("void, verdict stands" if round_.decided else "void", "warn")
    return chip("decided" if round_.decided else "open")


def verdict_summary(round_: RoundHistory) -> Html:
    if round_.verdict is None:
        return chip("no majority", "warn") if round_.over else text("")
    return verdict_words(round_.verdict)


def verdict_words(verdict: Verdict) -> Html:
    passed = chip(f"{len(verdict.passed)} passed", "good")
    if not verdict.faults:
        return passed
    return join((passed, chip(f"{len(verdict.faults)} at fault", "bad")), " ")


def reason_words(reason: FaultReason) -> str:
    return {
        FaultReason.COMMITMENT_MISMATCH: "shares do not open the commitment",
        FaultReason.NOT_DELIVERED: "shares not delivered",
        FaultReason.INPUT_NOT_COMMITTED: "input not in the data set",
        FaultReason.REPLAY_OUTSIDE: "replay outside the boundary",
    }[reason]


def slash_chip(slash: Slash) -> Html:
    if slash.executed is not None:
        return chip(f"executed in block {slash.executed.block}", "bad")
    if slash.vetoed is not None:
        return chip(f"vetoed in block {slash.vetoed.block}", "good")
    return chip(f"pending, executable from block {slash.requested.event.executable_at}", "warn")
