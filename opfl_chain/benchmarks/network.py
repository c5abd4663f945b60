"""Several hosts on one machine: each in a network of its own, joined by a forwarder of packets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from opfl_chain.benchmarks.namespace import Namespace

_FORWARDER: Final = Path(__file__).with_name("forwarder.py")
_PREFIX: Final = 24
_STOP_SECONDS: Final = 5.0


class Network:
    """`hosts` are in the order of `addresses`, which are of one IPv4 network with 24 bits. A packet
    takes so many `seconds`.

    The process that makes it is in none of them, and reaches them by `Namespace.run` only. Raises
    NamespacesUnavailable where the system or its rights do not suffice.
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

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
