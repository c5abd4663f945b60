"""Checks that no wei appears or is lost in any stake, any credit, the budget or the whole job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from opfl_chain.chain.bindings import events
from opfl_chain.trail.history import History
from opfl_chain.trail.ledger import Ledger, final_ledger, movements
from opfl_chain.trail.report import Finding, at, now


def check_balances(history: History) -> Iterator[Finding]:
    for entry, event, ledger in movements(history):
        before = ledger.stakes[event.role, event.owner]
        if isinstance(event, events.Withdrawn):
            yield at(entry, "wei of the stake, all of which are taken", before, event.amount)
            continue
        after = Ledger(stakes=defaultdict(int, {(event.role, event.owner): before}))
        after.book(event)
        balance = after.stakes[event.role, event.owner]
        yield at(
            entry,
            f"wei of the stake after {entry.name}",
            balance,
            event.balance,
            holds=balance == event.balance and balance >= 0,
        )
    yield from _credits(history)
    yield from _final_balances(history, final_ledger(history))


def _credits(history: History) -> Iterator[Finding]:
    """Check each account's credit, from all jobs."""
    credit: dict[str, int] = defaultdict(int)
    for entry in history.trail.entries:
        event = entry.event
        if isinstance(event, events.Credited):
            credit[event.account] += event.amount
        elif isinstance(event, events.CreditWithdrawn):
            yield at(
                entry,
                "wei of the credit, all of which are paid",
                credit[event.account],
                event.amount,
            )
            credit[event.account] = 0
    for account, found in history.trail.final_state.credits.items():
        yield now("wei of credit", credit[account], found, who=account)


def _final_balances(history: History, ledger: Ledger) -> Iterator[Finding]:
    state, trail = history.trail.final_state, history.trail
    for (role, owner), stake in state.stakes.items():
        wei = ledger.stakes[role, owner]
        yield now(f"wei of the {role.name.lower()}'s stake", wei, stake.balance, who=owner)

    distributed = [entry.event for entry in trail.of(events.Distributed)]
    burned = sum(event.burned for event in distributed)
    credited = sum(event.to_treasury + event.to_members for event in distributed)
    funded = sum(entry.event.amount for entry in trail.of(events.Funded))
    paid = sum(entry.event.amount for entry in trail.of(events.Paid))
    pending = pending_wei(history)
    stakes = sum(stake.balance for stake in state.stakes.values())
    yield now("wei of the budget", funded - paid, state.budget)
    yield now(
        "wei that were locked or escrowed are withdrawn, held, set aside, burned, credited, paid"
        " for work, refunded or left of the budget",
        sum(ledger.locked.values()) + funded,
        sum(ledger.withdrawn.values()) + stakes + pending + burned + credited + paid + state.budget,
    )
    if state.job_count == 1:  # with several jobs, these are sums over all of them
        yield now("wei that are burned", burned, state.burned)
        yield now("wei of all credits", credited, _all_credit(history))
        backed = stakes + pending + state.burned + sum(state.credits.values()) + state.budget
        yield now(
            "wei that the contract owes and holds",
            f"at least {backed}",
            f"at least {backed}" if state.held >= backed else str(state.held),
        )


def pending_wei(history: History) -> int:
    """Return the wei set aside for audits that are not decided."""
    return sum(audit.held.event.held for audit in history.audits.values() if audit.ended is None)


def _all_credit(history: History) -> int:
    """Return the sum of current and withdrawn credits."""
    taken = sum(entry.event.amount for entry in history.trail.of(events.CreditWithdrawn))
    return taken + sum(history.trail.final_state.credits.values())
