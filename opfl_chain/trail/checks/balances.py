"""Checks that no wei appears or is lost in any stake, any credit or the whole job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from opfl_chain.chain.bindings.events import Credited, CreditWithdrawn, Distributed, Withdrawn
from opfl_chain.trail.history import History
from opfl_chain.trail.ledger import Ledger, final_ledger, movements
from opfl_chain.trail.report import Finding, at, now


def check_balances(history: History) -> Iterator[Finding]:
    for entry, event, ledger in movements(history):
        before = ledger.stakes[event.role, event.owner]
        if isinstance(event, Withdrawn):
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
        if isinstance(event, Credited):
            credit[event.account] += event.amount
        elif isinstance(event, CreditWithdrawn):
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
    state = history.trail.final_state
    for (role, owner), stake in state.stakes.items():
        wei = ledger.stakes[role, owner]
        yield now(f"wei of the {role.name.lower()}'s stake", wei, stake.balance, who=owner)

    distributed = [entry.event for entry in history.trail.of(Distributed)]
    burned = sum(event.burned for event in distributed)
    paid = sum(event.to_treasury + event.to_committee for event in distributed)
    pending = pending_wei(history)
    held = sum(stake.balance for stake in state.stakes.values())
    yield now(
        "wei that were locked are withdrawn, held, set aside, burned or paid out as credit",
        sum(ledger.locked.values()),
        sum(ledger.withdrawn.values()) + held + pending + burned + paid,
    )
    if state.job_count == 1:  # with several jobs, these are sums over all of them
        yield now("wei that are burned", burned, state.burned)
        yield now("wei of all credits", paid, _all_credit(history))
        backed = held + pending + state.burned + sum(state.credits.values())
        yield now(
            "wei that the contract owes and holds",
            f"at least {backed}",
            f"at least {backed}" if state.held >= backed else str(state.held),
        )


def pending_wei(history: History) -> int:
    """Return the wei set aside for slashes that are neither vetoed nor executed."""
    return sum(s.requested.event.captured for s in history.slashes.values() if s.pending)


def _all_credit(history: History) -> int:
    """Return the sum of current and withdrawn credits."""
    taken = sum(entry.event.amount for entry in history.trail.of(CreditWithdrawn))
    return taken + sum(history.trail.final_state.credits.values())
