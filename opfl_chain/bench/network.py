"""Hosts on one machine: network namespaces joined by a forwarder that delays packets."""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from opfl_chain.mpc.local import LocalCommittee
from opfl_chain.mpc.session.party import Party
from opfl_chain.mpc.session.party_config import PartyConfig
from opfl_chain.mpc.session.ranks import MEMBERS, certificate_name
from opfl_chain.system.closing import Closing
from opfl_chain.transport.certificates import Authority

T = TypeVar("T")

_TUN: Final = Path("/dev/net/tun")
_DEVICE: Final = "tun0"
_CLONE_NEWNET: Final = 0x40000000
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_MTU: Final = 1500
_QUEUE_PACKETS: Final = 20_000
"""More than TCP has in flight, so that the device drops nothing while its reader is busy."""

_PERMISSION: Final = (
    "run with the capabilities NET_ADMIN and SYS_ADMIN (root has them), or under "
    "`unshare --user --map-root-user`"
)
_FORWARDER: Final = Path(__file__).with_name("forwarder.py")
_PREFIX: Final = 24
_STOP_SECONDS: Final = 5.0
_HOSTS = tuple(f"10.77.0.{number + 1}" for number in range(MEMBERS + 1))
"""The members' hosts, and then the client's."""
_PORT = 7000
_PROBES = 5
_PROBE_SECONDS = 10.0


class NamespacesUnavailable(Exception):
    """This machine cannot make network namespaces; the message names the cause and the remedy."""

    def __init__(self, missing: str, remedy: str) -> None:
        super().__init__(f"cannot simulate a network: {missing}. To fix it, {remedy}.")


@dataclass(frozen=True)
class Place:
    """A host of a benchmark: its address, and a function that makes sockets there."""

    address: str
    socket: Callable[[], socket.socket] = socket.socket


LOOPBACK: Final = (Place("127.0.0.1"),) * (MEMBERS + 1)
"""The places of the members, and of a client, on this host."""


class Namespace(Closing):
    """A network namespace. Its packets are read from and written to the descriptor `tun`.

    It belongs to a thread and has no name: the kernel removes it with the last socket or process
    made in that thread, however this process ends.
    """

    def __init__(self, address: str, prefix: int) -> None:
        if sys.platform != "linux":
            raise NamespacesUnavailable(f"{sys.platform} has no network namespaces", "run on Linux")
        if shutil.which("ip") is None:
            raise NamespacesUnavailable("the `ip` command is not installed", "install iproute2")
        self.address = address
        self._thread = ThreadPoolExecutor(1, "namespace")
        try:
            self.run(_leave_network)
            self.tun = self.run(_open_tun)
        except BaseException:
            self._thread.shutdown()
            raise
        try:
            self._ip("link", "set", "dev", "lo", "up")
            self._ip("address", "add", f"{address}/{prefix}", "dev", _DEVICE)
            self._ip("link", "set", "dev", _DEVICE, "mtu", _MTU, "txqueuelen", _QUEUE_PACKETS, "up")
        except BaseException:
            self.close()
            raise

    def run(self, action: Callable[[], T]) -> T:
        """Run an action in the namespace."""
        return self._thread.submit(action).result()

    @property
    def place(self) -> Place:
        return Place(self.address, lambda: self.run(socket.socket))

    def close(self) -> None:
        self._thread.shutdown()
        os.close(self.tun)

    def _ip(self, *arguments: str | int) -> None:
        command = ["ip", *map(str, arguments)]
        done = self.run(lambda: subprocess.run(command, capture_output=True, text=True))
        if done.returncode:
            raise NamespacesUnavailable(
                f"`{' '.join(command)}` failed with {done.stderr.strip()!r}", _PERMISSION
            )


def _leave_network() -> None:
    """Move this thread alone to a new namespace."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise NamespacesUnavailable(f"creating a network namespace failed ({reason})", _PERMISSION)


def _open_tun() -> int:
    """Return the descriptor of a new TUN device in this thread's namespace."""
    try:
        tun = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
    except PermissionError as error:
        raise NamespacesUnavailable(f"no permission to open {_TUN}", "run as root") from error
    except OSError as error:
        raise NamespacesUnavailable(
            f"{_TUN} cannot be opened ({error.strerror})",
            f"load the kernel module `tun`, or start the container with `--device {_TUN}`",
        ) from error
    try:
        request = struct.pack("16sH22x", _DEVICE.encode(), _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(tun, _TUNSETIFF, request)
    except OSError as error:
        os.close(tun)
        raise NamespacesUnavailable(
            f"creating a TUN device failed ({error.strerror})", _PERMISSION
        ) from error
    return tun


class Network(Closing):
    """Hosts in the order of `addresses`, which belong to one /24 IPv4 network. A packet takes
    `seconds`.

    The calling process is on none of the hosts, and reaches them only by `Namespace.run`. Raises
    NamespacesUnavailable if the system lacks support or permissions.
    """

    def __init__(self, addresses: Sequence[str], seconds: float = 0.0) -> None:
        with ExitStack() as stack:
            self.hosts = [stack.enter_context(Namespace(each, _PREFIX)) for each in addresses]
            self._forwarder = self._start_forwarder(seconds)
            stack.callback(self._stop_forwarder)
            self._resources = stack.pop_all()

    def start(self, host: int, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Run a command on one of the hosts; `options` are those of Popen."""
        return self.hosts[host].run(lambda: subprocess.Popen(command, **options))

    def close(self) -> None:
        self._resources.close()

    def _start_forwarder(self, seconds: float) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", _FORWARDER, str(seconds)),
                *(f"{host.tun}={host.address}" for host in self.hosts),
            ],
            stdin=subprocess.PIPE,
            pass_fds=[host.tun for host in self.hosts],
            start_new_session=True,
        )

    def _stop_forwarder(self) -> None:
        if self._forwarder.stdin is not None:
            self._forwarder.stdin.close()
        try:
            self._forwarder.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._forwarder.kill()
            self._forwarder.wait()


@dataclass(frozen=True)
class Parties:
    """Three parties, the places of their members and of a client, and the measured RTT."""

    local: LocalCommittee
    places: Sequence[Place] = LOOPBACK
    measured_rtt_ms: float | None = None


@contextmanager
def three_parties(rtt_ms: float) -> Iterator[Parties]:
    """Start parties on loopback, or in a wide area network."""
    if not rtt_ms:
        with LocalCommittee() as local:
            yield Parties(local)
        return
    with WideAreaNetwork(rtt_ms) as network:
        measured = network.measured_rtt_ms()
        with network.committee() as local:
            yield Parties(local, network.places, measured)


class WideAreaNetwork(Closing):
    """`with WideAreaNetwork(20) as network, network.committee() as local: ...`

    No packet is lost and bandwidth is not limited: a benchmark shows the cost of latency. Raises
    NamespacesUnavailable if the system lacks support or permissions.
    """

    def __init__(self, rtt_ms: float) -> None:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="opfl-wan-")))
            *self._members, client = stack.enter_context(Network(_HOSTS, rtt_ms / 2000)).hosts
            self.places = [each.place for each in (*self._members, client)]
            authority = Authority.create(folder)
            self._files = [authority.issue(certificate_name(rank)) for rank in range(MEMBERS)]
            self._resources = stack.pop_all()

    def committee(self) -> LocalCommittee:
        """Start a party in each network. A failed party is not replaced: a new process would be in
        our own network.
        """
        addresses = tuple(f"{member.address}:{_PORT}" for member in self._members)
        return LocalCommittee(addresses, self._files, self._start_party)

    def measured_rtt_ms(self) -> float:
        """Return the median over all pairs: a TCP handshake takes one round trip."""
        pairs = itertools.permutations(self._members, 2)
        return 1000 * statistics.median(
            _handshake_seconds(*pair) for pair in pairs for _ in range(_PROBES)
        )

    def close(self) -> None:
        self._resources.close()

    def _start_party(self, config: PartyConfig) -> Party:
        return self._members[config.rank].run(lambda: Party(config))


def _handshake_seconds(caller: Namespace, called: Namespace) -> float:
    with called.run(socket.socket) as listener, caller.run(socket.socket) as stream:
        listener.bind((called.address, 0))
        listener.listen()
        stream.settimeout(_PROBE_SECONDS)
        started = time.perf_counter()
        stream.connect(listener.getsockname())
        return time.perf_counter() - started
