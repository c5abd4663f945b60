"""Limits of a verification: what is still open, and what the chain alone does not show."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.protocol.identifiers import Address
from opfl_chain.trail.checks.statements import call_kind
from opfl_chain.trail.history import History, RoundHistory


def limits_of(history: History) -> Iterator[str]:
    """Say what was not checked, and which audits are undecided."""
    rolls = [round_ for round_ in history.rounds.values() if round_.roll is not None]
    if rolls and history.terms.public_roll:
        yield (
            "roots of rolls are not recomputed: their leaves hold content hashes, which the chain"
            " shows of held contributions only; pairs, counts and signatures are checked"
        )
    elif rolls:
        yield (
            "the rolls of this job are not public: which clients are on them, and which of them"
            " are audited, is checked of held contributions only"
        )
    if rolls and history.opens_in_mpc:
        yield (
            "gradients of this job open inside MPC, after the seed: contributions that are not"
            " audited may be left out at no cost, and why they were is not checked"
        )
    for round_ in rolls:
        yield from _open_audits(history, round_)
    unseen = {
        entry.transaction
        for entry in history.trail.entries
        if call_kind(entry.event) is not None and entry.transaction not in history.trail.calls
    }
    if unseen:
        yield (
            f"{len(unseen)} calls were made by other contracts: signatures and proofs in them are"
            " not checked again"
        )


def _open_audits(history: History, round_: RoundHistory) -> Iterator[str]:
    """Name the audits of a decided round that did not pass, and have not ended."""
    for client in failed(history, round_):
        audit = history.audits.get((round_.number, client))
        if audit is None:
            yield f"round {round_.number}: the audit of {client} did not pass, and is not held yet"
        elif audit.ended is None:
            yield f"round {round_.number}: the audit of {client} is held and undecided"


def failed(history: History, round_: RoundHistory) -> Iterator[Address]:
    """Yield the known clients on a decided roll that were audited and did not pass."""
    if round_.passed is None:
        return
    for client in history.contributors(round_):
        index = history.clients[client].event.index
        if index not in round_.passed and round_.is_audited(client):
            yield client
