"""Checks that two equal attestations decide a verdict, and that it fits roll and audits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from opfl_chain.chain.bindings.events import VerdictAttested, VerdictDecided
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.verdict import passed_clients, verdict_hash
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.record import Entry, Place
from opfl_chain.trail.report import Finding, at, now

_MAJORITY = 2


def check_verdicts(history: History) -> Iterator[Finding]:
    for number, round_ in history.rounds.items():
        yield from _attestations(history, round_)
        found = history.trail.final_state.rounds.get(number)
        if found is not None:
            hashes = tuple(_recorded(round_, member) for member in round_.seats)
            yield now("hashes that members attested", hashes, found.attestations, round_=number)
            decided = round_.decided.event.verdict_hash if round_.decided else bytes(32)
            yield now("hash of the verdict", decided, found.verdict_hash, round_=number)
            for name, members, mask in (
                ("mask of those who attested", round_.attested, found.attested),
                ("mask of the majority", round_.majority, found.majority),
            ):
                due = sum(1 << seat for seat, who in enumerate(round_.seats) if who in members)
                yield now(name, due, mask, round_=number)


def _recorded(round_: RoundHistory, member: Address) -> bytes:
    """Return the hash that the contract keeps: of an attestation that came before the decision."""
    entry, decided = round_.attested.get(member), round_.decided
    if entry is None or (decided is not None and entry.place >= _deciding(decided)):
        return bytes(32)
    return verdict_hash(entry.event.passes)


def _deciding(decided: Entry[VerdictDecided]) -> Place:
    """Return the place of the attestation that decided, the log before."""
    return decided.block, decided.log_index - 1


def _attestations(history: History, round_: RoundHistory) -> Iterator[Finding]:
    votes: Counter[bytes] = Counter()
    seen: set[str] = set()
    due: set[tuple[int, int]] = set()
    count = round_.roll.event.count if round_.roll is not None else 0
    for entry in round_.of(VerdictAttested):
        member, passes = entry.event.member, entry.event.passes
        yield at(entry, "who attests has a seat in the round", True, member in round_.seats)
        yield at(entry, "a member attests once", False, member in seen)
        seen.add(member)
        passed = len(passed_clients(passes))
        yield at(
            entry,
            "contributions that pass",
            f"at most the {count} on the roll",
            passed,
            holds=passed <= count,
        )
        attested = verdict_hash(passes)
        votes[attested] += 1
        if votes[attested] == _MAJORITY and not due:
            decided = history.after(entry, VerdictDecided)
            stated = (decided.event.verdict_hash, decided.event.passed) if decided else None
            yield at(entry, "the second equal attestation decides", (attested, passed), stated)
            yield at(
                entry,
                "the decided verdict is canonical",
                "no zero byte at the end",
                passes,
                holds=not passes.endswith(b"\0"),
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


def check_passes(history: History) -> Iterator[Finding]:
    for round_ in history.rounds.values():
        if round_.decided is not None and round_.passed is not None:
            yield from _passed(history, round_, round_.decided, round_.passed)


def _passed(
    history: History,
    round_: RoundHistory,
    decided: Entry[VerdictDecided],
    passed: Set[ClientIndex],
) -> Iterator[Finding]:
    eligible = history.eligible(round_)
    listed = None if round_.pairs is None else {index for index, _ in round_.pairs}
    for index in sorted(passed):
        client = history.client_at.get(index)
        if client is None:
            known = f"a client, 0 to {len(history.clients) - 1}"
            yield at(decided, "index of a client that passed", known, index, holds=False)
        else:
            # Without pairs, the chain shows only who could be on the roll.
            on_roll = client in eligible if listed is None else index in listed
            yield at(decided, "a client that passed is on the roll", True, on_roll, who=client)
    if history.opens_in_mpc:
        return  # what does not open is left out, audited or not
    for index in sorted(listed or ()):
        client = history.client_at.get(index)
        if client is not None and not round_.is_audited(client):
            yield at(
                decided,
                "a contribution that is not audited passes",
                True,
                index in passed,
                who=client,
            )
