"""Checks again the signatures and proofs that contracts verified, from the call data.

If a foreign contract called ours, the transaction does not hold our call data, and nothing of it is
checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.types import MemberFault, Outcome
from opfl_chain.chain.bls import PublicKey, Signature, verify_possession
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.chain.errors import InvalidPoint
from opfl_chain.chain.keys import signer_of
from opfl_chain.protocol.hashing import keccak256, verify_proof
from opfl_chain.protocol.identifiers import Address, RoundNumber
from opfl_chain.protocol.randomness import PUBLIC_KEY_BYTES, proof_of_possession_message
from opfl_chain.protocol.roll import roll_leaf
from opfl_chain.protocol.statements import (
    AuditOutcome,
    Contribution,
    MemberFaultStatement,
    MemberMessage,
    Roll,
    RoundResult,
    SeatChange,
    SigningDomain,
    Statement,
)
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.record import (
    ACQUIT,
    CHANGE_SEAT,
    CHARGE,
    COMMIT_ROLL,
    FINALISE,
    HOLD,
    JOIN_COMMITTEE,
    PENALISE,
    PENALISE_CERTIFIED,
    PENALISE_EQUIVOCATION,
    REGISTER_KEY,
    CallKind,
    Entry,
    decode_call,
)
from opfl_chain.trail.report import Finding, at

_SIGNED: Final[Mapping[type[Event], CallKind]] = {
    events.KeyRegistered: REGISTER_KEY,
    events.MemberJoined: JOIN_COMMITTEE,
    events.SeatChanged: CHANGE_SEAT,
    events.RollCommitted: COMMIT_ROLL,
    events.RoundFinalised: FINALISE,
    events.AuditHeld: HOLD,
    events.ClientCharged: CHARGE,
    events.ClientAcquitted: ACQUIT,
}
_PENALISED: Final = {
    MemberFault.SILENCE: PENALISE,
    MemberFault.DISSENT: PENALISE,
    MemberFault.WITHHELD: PENALISE,
    MemberFault.ABSENCE: PENALISE_CERTIFIED,
    MemberFault.FALSEHOOD: PENALISE_CERTIFIED,
    MemberFault.EQUIVOCATION: PENALISE_EQUIVOCATION,
}


def check_statements(history: History) -> Iterator[Finding]:
    for entry in history.trail.entries:
        kind, data = call_kind(entry.event), history.trail.calls.get(entry.transaction)
        if kind is None or data is None:
            continue
        call = decode_call(data, kind)
        name = kind.function if call is not None else "another function"
        yield at(entry, f"the function that {entry.name} comes from", kind.function, name)
        if call is not None:
            yield from _CHECKS[type(entry.event)](history, entry, call)


def call_kind(event: Event) -> CallKind | None:
    """Return the call that an event comes from, if it says more than the event."""
    if isinstance(event, events.MemberPenalised):
        return _PENALISED[event.fault]
    return _SIGNED.get(type(event))


def _possession(
    history: History, entry: Entry[events.KeyRegistered], call: tuple[Any, ...]
) -> Iterator[Finding]:
    trail, event = history.trail, entry.event
    if len(event.public_key) != PUBLIC_KEY_BYTES:
        return
    message = proof_of_possession_message(
        trail.chain_id, trail.contracts["Beacon"], event.member, event.public_key
    )
    try:
        key, proof = PublicKey.from_eip2537(event.public_key), Signature.from_eip2537(call[1])
        valid = verify_possession(key, message, proof)
    except InvalidPoint:
        valid = False
    yield at(entry, "the member's proof that it holds the key is valid", True, valid)


def _joined(
    history: History, entry: Entry[events.MemberJoined], call: tuple[Any, ...]
) -> Iterator[Finding]:
    del history
    yield at(entry, "sealing key of the member", call[1], entry.event.sealing_key)


def _seat_change(
    history: History, entry: Entry[events.SeatChanged], call: tuple[Any, ...]
) -> Iterator[Finding]:
    event = entry.event
    change = SeatChange(history.trail.job, max(event.epoch - 1, 0), event.seat, event.to)
    yield _two_of(history, entry, change, call[-1], history.seats_at(entry.place))


def _roll(
    history: History, entry: Entry[events.RollCommitted], call: tuple[Any, ...]
) -> Iterator[Finding]:
    event, (round_, opening) = entry.event, _round(history, entry)
    roll = Roll(
        history.trail.job,
        round_.number,
        opening,
        event.root,
        event.count,
        keccak256(event.pairs),
    )
    yield _two_of(history, entry, roll, call[-1], round_.seats)


def _result(
    history: History, entry: Entry[events.RoundFinalised], call: tuple[Any, ...]
) -> Iterator[Finding]:
    event, (round_, opening) = entry.event, _round(history, entry)
    if round_.decided is None:
        return
    result = RoundResult(
        history.trail.job,
        round_.number,
        opening,
        round_.decided.event.verdict_hash,
        event.aggregate_hash,
        event.model_hash,
    )
    yield _two_of(history, entry, result, call[-1], round_.seats)


def _evidence(
    history: History, entry: Entry[events.AuditHeld], call: tuple[Any, ...]
) -> Iterator[Finding]:
    """Check that the client that is held signed a contribution that is on the roll."""
    client, (round_, opening) = entry.event.client, _round(history, entry)
    _, _, passes, (commitment, rest_hash, path, signature) = call
    decided = round_.decided.event.verdict_hash if round_.decided is not None else None
    yield at(entry, "hash of the verdict that is given", decided, keccak256(passes))
    content_hash = keccak256(commitment, rest_hash)
    leaf = roll_leaf(client, content_hash)
    root = round_.roll.event.root if round_.roll is not None else bytes(32)
    yield at(
        entry, "the contribution that is held is on the roll", True, verify_proof(path, root, leaf)
    )
    if round_.pairs is not None:
        listed = {history.client_at.get(index): each for index, each in round_.pairs}
        yield at(
            entry, "commitment of the contribution that is held", listed.get(client), commitment
        )
    statement = Contribution(history.trail.job, round_.number, opening, client, content_hash)
    signer = _signer(history, statement, signature)
    yield at(entry, "signer of the contribution that is held", client, signer)


def _outcome(
    history: History,
    entry: Entry[events.ClientCharged] | Entry[events.ClientAcquitted],
    call: tuple[Any, ...],
) -> Iterator[Finding]:
    event, (round_, opening) = entry.event, _round(history, entry)
    outcome = event.outcome if isinstance(event, events.ClientCharged) else Outcome.PASSED
    statement = AuditOutcome(
        history.trail.job, round_.number, opening, event.client, int(outcome.value)
    )
    # Those who have the seats now decide audits of all rounds.
    yield _two_of(history, entry, statement, call[-1], history.seats_at(entry.place))


def _fault(
    history: History, entry: Entry[events.MemberPenalised], call: tuple[Any, ...]
) -> Iterator[Finding]:
    event, (round_, opening) = entry.event, _round(history, entry)
    job, number = history.trail.job, round_.number
    if _PENALISED[event.fault] is PENALISE:
        yield at(entry, "fault that was shown", event.fault.value, call[2])
        return
    if _PENALISED[event.fault] is PENALISE_CERTIFIED:
        others = [
            who
            for who in history.roster
            if who != event.member and history.has_joined(who, entry.place)
        ]
        fault = int(event.fault.value)
        statement = MemberFaultStatement(job, number, opening, event.member, fault)
        yield _two_of(history, entry, statement, call[-1], others)
        return
    _, _, slot, hashes, signatures = call
    yield at(entry, "two messages in one slot differ", 2, len(set(hashes)))
    for content_hash, signature in zip(hashes, signatures, strict=True):
        message = MemberMessage(job, number, opening, slot, content_hash)
        signer = _signer(history, message, signature)
        yield at(entry, f"signer of a message in slot {slot}", event.member, signer)


# Each check takes the entries of the event that it is registered for.
_CHECKS: Final[Mapping[type[Event], Callable[..., Iterator[Finding]]]] = {
    events.KeyRegistered: _possession,
    events.MemberJoined: _joined,
    events.SeatChanged: _seat_change,
    events.RollCommitted: _roll,
    events.RoundFinalised: _result,
    events.AuditHeld: _evidence,
    events.ClientCharged: _outcome,
    events.ClientAcquitted: _outcome,
    events.MemberPenalised: _fault,
}


def _round(history: History, entry: Entry[Event]) -> tuple[RoundHistory, bytes]:
    """Return the round of an event and its opening, zero for a round that was never opened."""
    round_ = history.rounds[entry.round or RoundNumber(0)]
    return round_, round_.opened.event.opening if round_.opened is not None else bytes(32)


def _two_of(
    history: History,
    entry: Entry[Event],
    statement: Statement,
    signatures: Sequence[bytes],
    allowed: Collection[Address],
) -> Finding:
    signers = {_signer(history, statement, signature) for signature in signatures}
    return at(
        entry,
        f"two members signed the {type(statement).__name__}",
        "2 of " + ", ".join(allowed),
        ", ".join(sorted(map(str, signers))),
        holds=len(signers & set(allowed)) == 2,
    )


def _signer(history: History, statement: Statement, signature: bytes) -> str | None:
    trail = history.trail
    return signer_of(statement, SigningDomain(trail.chain_id, trail.contracts["Jobs"]), signature)
