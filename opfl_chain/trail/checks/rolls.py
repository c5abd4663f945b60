"""Checks who is on the roll of a round.

The leaves of its root hold content hashes, which the chain does not show: the root itself cannot be
recomputed from the pairs. Contributions that are held are checked against it, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from opfl_chain.chain.bindings.events import RollCommitted
from opfl_chain.protocol.roll import PAIR_BYTES
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at, now


def check_rolls(history: History) -> Iterator[Finding]:
    for number, round_ in history.rounds.items():
        roll = round_.roll
        if roll is not None:
            yield from _roll(history, round_, roll)
        found = history.trail.final_state.rounds.get(number)
        if found is not None:
            stated = (roll.event.root, roll.event.count) if roll is not None else (bytes(32), 0)
            yield now(
                "root and count of the roll", stated, (found.root, found.count), round_=number
            )


def _roll(history: History, round_: RoundHistory, roll: Entry[RollCommitted]) -> Iterator[Finding]:
    event = roll.event
    yield at(roll, "the root of the roll is empty", False, not any(event.root))
    clients = sum(entry.place < roll.place for entry in history.clients.values())
    yield at(
        roll,
        "contributions on the roll",
        f"1 to {clients}",
        event.count,
        holds=1 <= event.count <= clients,
    )
    size = PAIR_BYTES * event.count if history.terms.public_roll else 0
    yield at(roll, "bytes of the pairs", size, len(event.pairs))
    pairs = round_.pairs or ()
    for (before, _), (index, _) in pairwise(pairs):
        yield at(
            roll,
            "pairs are in increasing order of client",
            f"above {before}",
            index,
            holds=index > before,
        )
    eligible = history.eligible(round_)
    for index, commitment in pairs:
        client = history.client_at.get(index)
        if client is None:
            known = f"a client, 0 to {len(history.clients) - 1}"
            yield at(roll, "index of a client on the roll", known, index, holds=False)
            continue
        yield at(
            roll,
            "a client on the roll was active when the round opened",
            True,
            client in eligible,
            who=client,
        )
        yield at(roll, "the commitment is empty", False, not any(commitment), who=client)
