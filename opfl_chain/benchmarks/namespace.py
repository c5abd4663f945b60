"""A network for one member: a Linux network namespace with a TUN device as its only way out.

The namespace is that of a thread, and has no name. Sockets and processes made in the thread belong
to it, and the kernel removes it with the last of them, however this process ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

T = TypeVar("T")

_TUN: Final = Path("/dev/net/tun")
_DEVICE: Final = "tun0"
_CLONE_NEWNET: Final = 0x40000000
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_MTU: Final = 1500
_QUEUE_PACKETS: Final = 20_000
"""More than TCP has under way, so that the device loses nothing while its reader is busy."""

_PERMISSION: Final = (
    "run with the capabilities NET_ADMIN and SYS_ADMIN, as root has them, or under "
    "`unshare --user --map-root-user`"
)


class NamespacesUnavailable(Exception):
    """Says what is missing on this machine, and how to come by it."""

    def __init__(self, missing: str, remedy: str) -> None:
        super().__init__(f"a round-trip time needs network namespaces, and {missing}: {remedy}.")


class Namespace:
    """`tun` is a descriptor: what leaves the namespace is read there, and what enters written."""

    def __init__(self, address: str, prefix: int) -> None:
        if sys.platform != "linux":
            raise NamespacesUnavailable(f"this is {sys.platform}", "run on Linux")
        if shutil.which("ip") is None:
            raise NamespacesUnavailable("there is no `ip` command", "install iproute2")
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
        """Do something in the namespace."""
        return self._thread.submit(action).result()

    def close(self) -> None:
        self._thread.shutdown()
        os.close(self.tun)

    def _ip(self, *arguments: str | int) -> None:
        command = ["ip", *map(str, arguments)]
        done = self.run(lambda: subprocess.run(command, capture_output=True, text=True))
        if done.returncode:
            raise NamespacesUnavailable(
                f"`{' '.join(command)}` says {done.stderr.strip()!r}", _PERMISSION
            )

    def __enter__(self) -> Namespace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _leave_network() -> None:
    """Move this thread alone to a new namespace."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise NamespacesUnavailable(f"none can be made ({reason})", _PERMISSION)


def _open_tun() -> int:
    """A descriptor of a new TUN device in this thread's namespace."""
    try:
        tun = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
    except PermissionError as error:
        raise NamespacesUnavailable(f"{_TUN} may not be opened", "run as root") from error
    except OSError as error:
        raise NamespacesUnavailable(
            f"{_TUN} cannot be opened ({error.strerror})",
            f"load the kernel's module `tun`, or start the container with `--device {_TUN}`",
        ) from error
    try:
        request = struct.pack("16sH22x", _DEVICE.encode(), _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(tun, _TUNSETIFF, request)
    except OSError as error:
        os.close(tun)
        raise NamespacesUnavailable(
            f"no TUN device can be made ({error.strerror})", _PERMISSION
        ) from error
    return tun
