"""Forwards IP packets between TUN devices with a delay: `python forwarder.py SECONDS FD=ADDRESS...`

It runs as a separate program, and imports only the standard library, because inside the benchmark's
process it would wait for the interpreter's lock. It exits when its stdin closes.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping

_PACKET_BYTES = 1 << 16
_BURST = 64
"""Packets to read from one device before delivering those due."""
_DESTINATION = slice(16, 20)
"""The destination address in the header of an IPv4 packet."""


class DelayLine:
    """Packets under way. Each becomes due once, `seconds` after it was put in, in that order."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._under_way: deque[tuple[float, int, bytes]] = deque()

    def put(self, now: float, target: int, packet: bytes) -> None:
        self._under_way.append((now + self._seconds, target, packet))

    def pause(self, now: float) -> float | None:
        """Return the seconds until a packet is due; None if there is none."""
        return max(0.0, self._under_way[0][0] - now) if self._under_way else None

    def take_due(self, now: float) -> Iterator[tuple[int, bytes]]:
        while self._under_way and self._under_way[0][0] <= now:
            _, target, packet = self._under_way.popleft()
            yield target, packet


def forward(devices: Mapping[bytes, int], seconds: float, lifeline: int) -> None:
    """Deliver each packet to the device of its destination, `seconds` after it was sent."""
    sources = [*devices.values(), lifeline]
    line = DelayLine(seconds)
    while True:
        readable, _, _ = select.select(sources, [], [], line.pause(time.monotonic()))
        if lifeline in readable:
            return
        for source in readable:
            with contextlib.suppress(BlockingIOError):
                for _ in range(_BURST):
                    packet = os.read(source, _PACKET_BYTES)
                    target = devices.get(packet[_DESTINATION])
                    if target is not None:
                        line.put(time.monotonic(), target, packet)
        for target, packet in line.take_due(time.monotonic()):
            with contextlib.suppress(OSError):  # the packet is lost, which IP allows
                os.write(target, packet)


def main() -> None:
    with contextlib.suppress(PermissionError):  # run ahead of members that keep all cores busy
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    devices = {}
    for argument in sys.argv[2:]:
        descriptor, _, address = argument.partition("=")
        devices[socket.inet_aton(address)] = int(descriptor)
    forward(devices, float(sys.argv[1]), lifeline=0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which stops us
    main()
