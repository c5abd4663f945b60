"""Verdicts are about clients that committed, and faults of replays about audited ones."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import VerdictDecided
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.trail.history import History
from opfl_chain.trail.record import Entry
from opfl_chain.trail.report import Finding, at
from opfl_chain.trail.round_history import RoundHistory

_OF_REPLAYS = (FaultReason.INPUT_NOT_COMMITTED, FaultReason.REPLAY_OUTSIDE)


def check(history: History) -> Iterator[Finding]:
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
    # A batch says how many committed in it, and not who; who is shown when one is slashed.
    room = round_.batch.event.count if round_.batch is not None else 0
    for place, client in enumerate(relayed, 1):
        yield at(
            decided,
            "a judged client committed",
            f"directly, or among {room} in a batch",
            f"judged as number {place} of those who did not commit directly",
            holds=place <= room,
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
