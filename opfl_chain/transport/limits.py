"""Server resource limits, and the rate limit per address."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from opfl_chain.transport.errors import LimitInvalid

_MOST_ADDRESSES: Final = 10_000
"""Number of tracked addresses. Beyond it the one idle for longest is forgotten."""
_IPV6_PREFIX: Final = 64
"""The usual allocation of one subscriber; all addresses under it count as one."""


@dataclass(frozen=True)
class Limits:
    """Limits for a whole server. The size of bodies is limited per route."""

    connections: int = 256
    """Connections of strangers, beside as many of addresses from which signed requests came. When
    all places are taken, the one that was idle for longest gives way to a new one."""
    connections_per_address: int = 128
    """Keeps one address from taking all connections."""
    connections_per_peer: int = 32
    """Connections reserved for each peer that shows a certificate of the job's authority."""
    requests_per_second: float = 50.0
    """Sustained rate per address."""
    burst: int = 200
    """Requests at once from an address that was idle before."""
    header_bytes: int = 16 * 1024
    """Request line and all headers together."""
    head_seconds: float = 10.0
    """Total time from the connection to the end of the headers, TLS handshake included."""
    receive_seconds: float = 30.0
    """Total time from the connection to the last byte of the request."""
    answer_seconds: float = 60.0
    """Total time to send the response."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise LimitInvalid(f"{field.name} is {value}. Give a number above 0.")


def sender_of(address: str) -> str:
    """Return the key under which an address is rate-limited."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))


@dataclass
class _Bucket:
    tokens: float
    filled_at: float


class RateLimiter:
    """Call `take` for every request; it is thread-safe."""

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, sender: str) -> float:
        """Return zero if the request may pass, else the seconds to wait before the next one."""
        now = self._clock()
        with self._lock:
            bucket = self._buckets.pop(sender, None) or _Bucket(self._burst, now)
            self._buckets[sender] = bucket
            if len(self._buckets) > _MOST_ADDRESSES:
                self._buckets.popitem(last=False)
            gained = (now - bucket.filled_at) * self._per_second
            bucket.tokens = min(self._burst, bucket.tokens + gained)
            bucket.filled_at = now
            if bucket.tokens < 1:
                return (1 - bucket.tokens) / self._per_second
            bucket.tokens -= 1
            return 0.0
