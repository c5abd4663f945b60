"""Checks that two equal attestations decide a verdict, and that it fits the audits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opfl_chain.chain.bindings.events import VerdictAttested, VerdictDecided
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.trail.history import History, RoundHistory, attested_hash, read_verdict
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at, now

_MAJORITY = 2
_OF_REPLAYS = (FaultReason.INPUT_NOT_COMMITTED, FaultReason.REPLAY_OUTSIDE)


def check_verdicts(history: History) -> Iterator[Finding]:
    for number, round_ in history.rounds.items():
        yield from _attestations(history, round_)
        found = history.trail.final_state.rounds.get(number)
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


def check_audits(history: History) -> Iterator[Finding]:
    for round_ in history.rounds.values():
        if round_.decided is not None and round_.verdict is not None:
            yield from _judged(history, round_, round_.decided, round_.verdict)


def _judged(
    history: History, round_: RoundHistory, decided: Entry[VerdictDecided], verdict: Verdict
) -> Iterator[Finding]:
    judged = [*verdict.passed, *(fault.client for fault in verdict.faults)]
    relayed: list[Address] = []
    for index in judged:
        client = history.client_at.get(index)
        if client is None:
            known = f"a client, 0 to {len(history.clients) - 1}"
            yield at(decided, "judged client index", known, index, holds=False)
        elif client in round_.direct:
            yield at(decided, "a judged client committed", True, True, who=client)
        else:
            relayed.append(client)
    # A batch states how many clients committed, not which; slashes show membership.
    batched = round_.batch.event.count if round_.batch is not None else 0
    for place, client in enumerate(relayed, 1):
        yield at(
            decided,
            "a judged client committed",
            f"directly, or among {batched} in a batch",
            f"judged as number {place} of those who did not commit directly",
            holds=place <= batched,
            who=client,
        )
    for fault in verdict.faults:
        client = history.client_at.get(fault.client)
        if client is None or fault.reason not in _OF_REPLAYS:
            continue
        yield at(
            decided,
            f"a client at fault for {fault.reason.name.lower()} is audited",
            True,
            round_.is_audited(client),
            who=client,
        )
