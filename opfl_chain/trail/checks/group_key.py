"""The key of the committee is the sum of the keys that its members registered."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import GroupFormed, KeyRegistered, MemberJoined
from opfl_chain.chain.bls import PublicKey, aggregate_public_keys
from opfl_chain.chain.errors import InvalidPoint
from opfl_chain.trail.history import History
from opfl_chain.trail.report import Finding, at


def check(history: History) -> Iterator[Finding]:
    registered: set[str] = set()
    for entry in history.trail.of(KeyRegistered):
        if entry.event.member in history.terms.members:
            yield at(entry, "a member registers one key", False, entry.event.member in registered)
            registered.add(entry.event.member)
    for joined in history.trail.of(MemberJoined):
        key = history.keys.get(joined.event.member)
        yield at(
            joined,
            "a member has a key before it joins",
            "KeyRegistered before",
            f"block {key.block}" if key is not None else None,
            holds=key is not None and key.place < joined.place,
        )
    for formed in history.trail.of(GroupFormed):
        keys = [history.keys[m] for m in history.terms.members if m in history.keys]
        try:
            points = [PublicKey.from_eip2537(key.event.public_key) for key in keys]
            total: bytes | str = aggregate_public_keys(points).eip2537()
        except InvalidPoint as error:
            total = str(error)
        yield at(formed, "sum of the members' keys", total, formed.event.group_key)
