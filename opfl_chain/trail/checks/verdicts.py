"""Two equal attestations of three decide, and nothing else does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opfl_chain.chain.bindings.events import VerdictAttested, VerdictDecided
from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding, at, now
from opfl_chain.trail.round_history import RoundHistory, attested_hash, read_verdict

_MAJORITY = 2


def check(history: History) -> Iterator[Finding]:
    for number, round_ in history.rounds.items():
        yield from _attestations(history, round_)
        found = history.trail.standing.rounds.get(number)
        if found is not None:
            members = history.terms.members
            attested = [round_.attested.get(member) for member in members]
            hashes = tuple(attested_hash(e) if e is not None else bytes(32) for e in attested)
            yield now("hashes that members attested", hashes, found.attestations, round_=number)
            mask = sum(1 << i for i, member in enumerate(members) if member in round_.majority)
            yield now("mask of the majority", mask, found.majority, round_=number)


def _attestations(history: History, round_: RoundHistory) -> Iterator[Finding]:
    votes: Counter[bytes] = Counter()
    seen: set[str] = set()
    due: set[tuple[int, int]] = set()
    for entry in round_.of(VerdictAttested):
        member = entry.event.member
        yield at(entry, "a member of the job attests", True, member in history.terms.members)
        yield at(entry, "a member attests once", False, member in seen)
        seen.add(member)
        attested = attested_hash(entry)
        votes[attested] += 1
        if votes[attested] == _MAJORITY and not due:
            decided = history.after(entry, VerdictDecided)
            found = decided.event.verdict_hash if decided is not None else None
            yield at(entry, "the second equal attestation decides", attested, found)
            yield at(
                entry,
                "what is decided is a verdict",
                "passes and faults that can be read",
                entry.event.verdict,
                holds=read_verdict(entry) is not None,
            )
            if decided is not None:
                due.add(decided.place)
    for decided in round_.of(VerdictDecided):
        most = votes.most_common(1)
        yield at(
            decided,
            "decided by two equal attestations",
            f"{_MAJORITY} equal attestations just before",
            f"{most[0][1] if most else 0} in the round",
            holds=decided.place in due,
        )
