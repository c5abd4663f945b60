"""Checks that work is paid once, as the decided verdicts say, and that the rest goes back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from opfl_chain.chain.bindings.events import Claimed, JobClosed, Paid, Refunded
from opfl_chain.protocol.identifiers import Address, RoundNumber
from opfl_chain.trail.checks.schedule import is_stillborn
from opfl_chain.trail.history import History
from opfl_chain.trail.record import (
    CLAIM_CONTRIBUTIONS,
    CLAIM_SERVICE,
    Entry,
    Place,
    decode_call,
)
from opfl_chain.trail.report import Finding, at, now

Work = tuple[RoundNumber | None, Address, int]
"""A round, an account, and the wei that it earned there. One account may be client and member."""


def check_rewards(history: History) -> Iterator[Finding]:
    earned = earned_pay(history)
    total = sum(work[2] * len(places) for work, places in earned.items())
    claimed: Counter[Work] = Counter()
    for claim in history.trail.of(Claimed):
        work = (claim.round, claim.event.account, claim.event.amount)
        claimed[work] += 1
        times = sum(place < claim.place for place in earned.get(work, ()))
        yield at(
            claim,
            "what is claimed was earned in the round, and not claimed before",
            f"{claimed[work]} times",
            f"earned {times} times",
            holds=claimed[work] <= times,
        )
    for refund in history.trail.of(Refunded):
        yield from _refund(history, refund, total)
    yield from _payments(history)
    state = history.trail.final_state
    yield now("wei that all decided rounds have earned", total, state.earned)
    paid = sum(work[2] * times for work, times in claimed.items())
    yield now("wei that were claimed", paid, state.paid)


def earned_pay(history: History) -> Mapping[Work, Sequence[Place]]:
    """Return the places at which work was earned: contributions that passed, and the majority."""
    earned: dict[Work, list[Place]] = defaultdict(list)
    pay = history.terms.pay
    for number, round_ in history.rounds.items():
        if round_.decided is None:
            continue
        for index in round_.passed or ():
            client = history.client_at.get(index)
            if client is not None:
                earned[number, client, pay.client].append(round_.decided.place)
        for member, attested in round_.majority.items():
            place = max(round_.decided.place, attested.place)
            earned[number, member, pay.member].append(place)
    return earned


def _refund(history: History, entry: Entry[Refunded], earned: int) -> Iterator[Finding]:
    over = _is_over(history, entry)
    yield at(entry, "the job is over", True, over or is_stillborn(history, entry))
    yield at(entry, "who gets the rest", history.created.event.creator, entry.event.creator)
    before = [refund for refund in history.trail.of(Refunded) if refund.place < entry.place]
    yield at(entry, "refunds before", 0, len(before))
    rest = history.created.event.budget - earned
    yield at(entry, "wei that nobody can earn any more", rest, entry.event.amount)


def _is_over(history: History, entry: Entry[Refunded]) -> bool:
    """Return whether the job was closed, and nobody could attest in its last round any more."""
    closed = next(history.trail.of(JobClosed), None)
    last = max(history.rounds, default=None)
    schedule = history.rounds[last].schedule if last is not None else None
    if closed is None or schedule is None:
        return False
    return closed.place < entry.place and entry.block > schedule.attest


def _payments(history: History) -> Iterator[Finding]:
    """Check that all claims of a call, and refunds, are paid, and nothing else."""
    explained = set()
    refunds = [[refund] for refund in history.trail.of(Refunded)]
    groups: list[list[Entry[Claimed]] | list[Entry[Refunded]]] = [*_calls(history), *refunds]
    for group in groups:
        paid = history.after(group[-1], Paid)
        recipient = paid.event.recipient if paid is not None else None
        for entry in group:
            yield at(entry, "who is paid", recipient, entry.who)
        yield from _claimed_rounds(history, group)
        amount = sum(entry.event.amount for entry in group)
        found = paid.event.amount if paid is not None else None
        yield at(group[-1], "the budget pays it", amount, found)
        if paid is not None:
            explained.add(paid.place)
    for paid in history.trail.of(Paid):
        yield at(
            paid,
            "what is paid was claimed or refunded just before",
            "Claimed or Refunded in the same transaction",
            None,
            holds=paid.place in explained,
        )


def _claimed_rounds(
    history: History, group: Sequence[Entry[Claimed]] | Sequence[Entry[Refunded]]
) -> Iterator[Finding]:
    """Check the rounds that a call claims, against its events."""
    data = history.trail.calls.get(group[0].transaction)
    for kind in (CLAIM_CONTRIBUTIONS, CLAIM_SERVICE):
        if (call := decode_call(data, kind)) is not None:
            for claimed, entry in zip_longest(call[1], group):
                round_ = getattr(entry.event, "round", None) if entry is not None else None
                yield at(entry or group[-1], "round that is claimed", claimed, round_)


def _calls(history: History) -> Iterator[list[Entry[Claimed]]]:
    """Yield the claims of each call, which stand one after the other."""
    entries: list[Entry[Claimed]] = []
    for entry in history.trail.of(Claimed):
        entries.append(entry)
        if history.after(entry, Claimed) is None:
            yield entries
            entries = []
