"""How often each address may ask: a bucket of tokens that refills steadily."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_MOST_ADDRESSES: Final = 10_000
"""That are remembered. Beyond it the one that has been silent for longest starts afresh."""
_IPV6_PREFIX: Final = 64
"""What one subscriber has: all addresses under it are one."""


def sender_of(address: str) -> str:
    """What counts as one address."""
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
    """`take` is called for every request, from any thread."""

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, sender: str) -> float:
        """Zero if the request may pass, else the seconds after which the next one may."""
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
