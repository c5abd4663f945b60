"""Three parties on one machine that are as far apart as a wide area network makes them.

Each is in a network of its own, with certificates, as members of different operators are. A packet
takes half the round-trip time. Nothing is lost, and the bandwidth is what this machine can carry: a
bench shows what it costs to wait for messages.
"""

from __future__ import annotations

import itertools
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from opfl_chain.benchmarks.namespace import Namespace
from opfl_chain.benchmarks.network import Network
from opfl_chain.mpc.local_committee import LocalCommittee
from opfl_chain.mpc.party import Party
from opfl_chain.mpc.ranks import MEMBERS
from opfl_chain.mpc.seat import Seat
from opfl_chain.mpc.tls import certificate_name
from opfl_chain.transport.certificates import Authority

_HOSTS = tuple(f"10.77.0.{rank + 1}" for rank in range(MEMBERS))
_PORT = 7000
_PROBES = 5
_PROBE_SECONDS = 10.0


@contextmanager
def three_parties(rtt_ms: float) -> Iterator[tuple[LocalCommittee, float | None]]:
    """On loopback, or apart and with the round-trip time that was measured."""
    if not rtt_ms:
        with LocalCommittee() as local:
            yield local, None
        return
    with WideAreaNetwork(rtt_ms) as network:
        measured = network.measured_rtt_ms()
        with network.committee() as local:
            yield local, measured


class WideAreaNetwork:
    """`with WideAreaNetwork(20) as network, network.committee() as local: ...`

    Raises NamespacesUnavailable where the system or its rights do not suffice.
    """

    def __init__(self, rtt_ms: float) -> None:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="opfl-wan-")))
            self._members = stack.enter_context(Network(_HOSTS, rtt_ms / 2000)).hosts
            authority = Authority.create(folder)
            self._files = [authority.issue(certificate_name(rank)) for rank in range(MEMBERS)]
            self._resources = stack.pop_all()

    def committee(self) -> LocalCommittee:
        """A party in each network. One that fails does not come back: a renewed process would be
        in ours.
        """
        addresses = tuple(f"{host}:{_PORT}" for host in _HOSTS)
        return LocalCommittee(addresses, self._files, self._start_party)

    def measured_rtt_ms(self) -> float:
        """The median over all pairs: a TCP connection is made in one round trip."""
        pairs = itertools.permutations(self._members, 2)
        return 1000 * statistics.median(
            _handshake_seconds(*pair) for pair in pairs for _ in range(_PROBES)
        )

    def close(self) -> None:
        self._resources.close()

    def _start_party(self, seat: Seat) -> Party:
        return self._members[seat.rank].run(lambda: Party(seat))

    def __enter__(self) -> WideAreaNetwork:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _handshake_seconds(caller: Namespace, called: Namespace) -> float:
    with called.run(socket.socket) as listener, caller.run(socket.socket) as stream:
        listener.bind((called.address, 0))
        listener.listen()
        stream.settimeout(_PROBE_SECONDS)
        started = time.perf_counter()
        stream.connect(listener.getsockname())
        return time.perf_counter() - started
