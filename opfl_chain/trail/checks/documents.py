"""Checks the terms of the job, its budget, and the hashes of its policy and boundary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from opfl_chain.chain.bindings.events import Funded
from opfl_chain.chain.terms import budget, shortest_unbonding
from opfl_chain.protocol.economics import BASIS_POINTS
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding, at, now

_FEWEST: Final = 3
"""A sum of two reveals each of them to the other."""


def check_documents(history: History) -> Iterator[Finding]:
    created, terms = history.created, history.terms
    yield at(created, "hash of the policy", terms.policy_hash, keccak256(created.event.policy))
    yield at(
        created, "hash of the boundary", terms.boundary_hash, keccak256(created.event.boundary)
    )
    yield at(created, "members", 3, len(terms.members))
    yield at(created, "accounts of the roster", len(history.roster), len(set(history.roster)))
    yield from _limits(history)
    yield from _budget(history)
    yield now("terms of the job", terms, history.trail.final_state.terms)


def _limits(history: History) -> Iterator[Finding]:
    """Check the terms that protect those who take part."""
    created, terms = history.created, history.terms
    least = shortest_unbonding(terms.phases)
    penalties = terms.penalties
    for name, lower, higher in (
        ("basis points for the treasury", terms.treasury_share, BASIS_POINTS),
        ("penalty of a client, within its deposit", penalties.client, terms.client_deposit),
        ("pay of a member, below the penalty for silence", terms.pay.member + 1, penalties.silence),
        ("penalty for silence, up to that for dissent", penalties.silence, penalties.dissent),
        ("penalty for dissent, up to that for absence", penalties.dissent, penalties.absence),
        ("penalty for absence, up to that for withholding", penalties.absence, penalties.withheld),
        ("penalty for withholding, within the stake", penalties.withheld, terms.member_stake),
        ("time to answer, within the response window", terms.phases.answer, terms.phases.response),
        ("lifetime of a round, within the unbonding delay", least, terms.unbonding_delay),
        ("lifetime of a round, within the unlock delay", least, terms.unlock_delay),
        ("fewest contributions to a sum", _FEWEST, terms.fewest_contributions),
        ("fewest contributions, within the places", terms.fewest_contributions, terms.max_clients),
    ):
        yield at(created, name, f"at most {higher}", lower, holds=lower <= higher)


def _budget(history: History) -> Iterator[Finding]:
    created = history.created
    needed, given = budget(history.terms), created.event.budget
    yield at(
        created,
        "wei of the budget, which pay all that can be earned",
        f"at least {needed}",
        given,
        holds=given >= needed,
    )
    funded = history.after(created, Funded)
    found = funded.event.amount if funded is not None else None
    yield at(created, "wei that are escrowed with it", given, found)
    for entry in history.trail.of(Funded):
        if entry is not funded:
            yield at(entry, "a budget is escrowed once, with the job", 1, 2)
