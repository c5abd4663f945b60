"""Places for connections: when there is none left, the longest idle one gives way to a new one.

Refusing newcomers instead would let anyone shut a port with as many silent connections as it has
places.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Collection
from typing import Generic, Protocol, TypeVar


class Guest(Protocol):
    """A connection in a pool."""

    @property
    def sender(self) -> str:
        """The sender that it is counted for: an address, or a peer by name."""

    @property
    def active_at(self) -> float:
        """The time of the last bytes in either direction; 0 if the peer never sent any."""

    @property
    def waits_for_us(self) -> bool:
        """True if the peer has done its part, so that only we are slow."""


G = TypeVar("G", bound=Guest)


class Pool(Generic[G]):
    """At most `places` connections, `places_per_sender` of one sender. Not thread-safe."""

    def __init__(self, places: int, places_per_sender: int) -> None:
        self.places = places
        self.places_per_sender = places_per_sender
        self._guests: dict[G, None] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def enter(self, guest: G) -> G | None:
        """Give a connection a place. Return the one that has lost its place to it, if any."""
        own = [each for each in self._guests if each.sender == guest.sender]
        displaced = None
        if len(own) >= self.places_per_sender:
            displaced = idlest(own)
        elif len(self._guests) >= self.places:
            displaced = idlest(self._guests)
        if displaced is not None:
            del self._guests[displaced]
        self._guests[guest] = None
        return displaced

    def leave(self, guest: G) -> None:
        """Free the place of a connection, if it still has one."""
        self._guests.pop(guest, None)


def idlest(guests: Collection[G]) -> G:
    """Return the connection that was silent for longest, the oldest if several never spoke.

    On a slow machine bytes may lie unread for long: their sender is not idle.
    """
    by_silence = sorted(guests, key=lambda guest: guest.active_at)
    return next((each for each in by_silence if not each.waits_for_us), by_silence[0])


def is_ready(stream: socket.socket, event: int) -> bool:
    """Return whether a stream is ready for `select.POLLIN` or `POLLOUT`, or has ended."""
    descriptor = stream.fileno()
    if descriptor < 0:
        return True
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(0))
