"""Checks the committees' keys, and the signatures and seed of every round's beacon."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bls import (
    PublicKey,
    Signature,
    aggregate_public_keys,
    aggregate_signatures,
    verify,
)
from opfl_chain.chain.errors import InvalidPoint
from opfl_chain.protocol.randomness import SIGNATURE_BYTES, beacon_message, seed_of_signature
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.report import Finding, at, now

_NO_SEED = bytes(32)


def check_group_keys(history: History) -> Iterator[Finding]:
    registered: set[str] = set()
    for entry in history.trail.of(events.KeyRegistered):
        if entry.event.member in history.roster:
            yield at(entry, "a member registers one key", False, entry.event.member in registered)
            registered.add(entry.event.member)
    for joined in history.trail.of(events.MemberJoined):
        key = history.keys.get(joined.event.member)
        yield at(
            joined,
            "a member has a key before it joins",
            "KeyRegistered before",
            f"block {key.block}" if key is not None else None,
            holds=key is not None and key.place < joined.place,
        )
    for formed in history.trail.of(events.GroupFormed):
        seats = history.seats_at(formed.place)
        keys = [history.keys[member] for member in seats if member in history.keys]
        try:
            points = [PublicKey.from_eip2537(key.event.public_key) for key in keys]
            total: bytes | str = aggregate_public_keys(points).eip2537()
        except InvalidPoint as error:
            total = str(error)
        yield at(formed, "sum of the members' keys", total, formed.event.group_key)
        epoch = history.epoch_at(formed.place)
        yield at(formed, "seat changes before the group key", epoch, formed.event.epoch)


def check_beacon(history: History) -> Iterator[Finding]:
    trail = history.trail
    group_keys = {e.event.epoch: e.event.group_key for e in trail.of(events.GroupFormed)}
    for number, round_ in history.rounds.items():
        seed = round_.beacon.event.seed if round_.beacon is not None else _NO_SEED
        yield now("seed of the round", seed, trail.final_state.seeds.get(number), round_=number)
        if round_.beacon is None:
            yield _withheld(history, round_)
        if round_.opened is None or round_.roll is None:
            continue
        message = beacon_message(
            trail.chain_id,
            trail.contracts["Beacon"],
            trail.job,
            number,
            round_.opened.event.opening,
            round_.roll.event.root,
        )
        yield from _partials(history, round_, message)
        group_key = group_keys.get(round_.opened.event.epoch, b"")
        for published in round_.of(events.BeaconPublished):
            signature = published.event.signature
            problem = _problem(group_key, message, signature)
            yield at(
                published, "signature of the roll by the group key", "valid", problem or "valid"
            )
            well_sized = len(signature) == SIGNATURE_BYTES
            due = seed_of_signature(signature) if well_sized else f"{SIGNATURE_BYTES} bytes"
            yield at(published, "seed of the signature", due, published.event.seed)


def _partials(history: History, round_: RoundHistory, message: bytes) -> Iterator[Finding]:
    seen: set[str] = set()
    signatures = []
    for entry in round_.of(events.PartialPublished):
        member = entry.event.member
        yield at(entry, "a member publishes its part once", False, member in seen)
        seen.add(member)
        key = history.keys.get(member)
        known = key is not None and member in round_.seats
        public_key = key.event.public_key if key is not None and known else b""
        problem = _problem(public_key, message, entry.event.signature)
        yield at(entry, "signature of the roll by the member", "valid", problem or "valid")
        if not problem:
            signatures.append(Signature.from_eip2537(entry.event.signature))
        if len(seen) == len(signatures) == len(round_.seats):
            total = aggregate_signatures(signatures).eip2537()
            beacon = history.after(entry, events.BeaconPublished)
            found = beacon.event.signature if beacon is not None else None
            yield at(entry, "sum of all parts is published with the last", total, found)


def _withheld(history: History, round_: RoundHistory) -> Finding:
    overdue = (
        round_.roll is not None
        and round_.schedule is not None
        and history.trail.block > round_.schedule.beacon
    )
    missing = {m for m in round_.seats if overdue and m not in round_.partials}
    found = history.trail.final_state.withheld.get(round_.number, frozenset())
    fact = "members that withheld their part"
    return now(fact, sorted(missing), sorted(found), round_=round_.number)


def _problem(public_key: bytes, message: bytes, signature: bytes) -> str:
    """Return why a signature is invalid; empty if it is valid."""
    try:
        key, point = PublicKey.from_eip2537(public_key), Signature.from_eip2537(signature)
    except InvalidPoint as error:
        return str(error)
    return "" if verify(key, message, point) else "not valid for this opening and roll"
