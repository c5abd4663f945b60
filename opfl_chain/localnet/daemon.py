"""One daemon in a process of its own, that can be killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from opfl_chain.chain.child import Child
from opfl_chain.localnet.errors import DaemonEnded
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import TransportError


class Daemon:
    """`name` is that of its settings file, and of its certificate where it has one."""

    def __init__(self, role: str, name: str, settings: Path, url: str, certificate: str) -> None:
        self.role = role
        self.name = name
        self.url = url
        self._settings = settings
        self._certificate = certificate
        self._starts = 0
        self._ended = True
        self._child: Child | None = None

    def start(self) -> None:
        self._starts += 1
        self._ended = False
        log = self._settings.with_name(f"{self.name}-{self._starts}.log")
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "opfl_chain.cli",
            self.role,
            self._settings,
        ]
        self._child = Child(command, log, env={"OMP_NUM_THREADS": "1"})

    @property
    def started(self) -> bool:
        """Whether it should be running."""
        return self._child is not None and not self._ended

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.alive

    @property
    def pid(self) -> int:
        if self._child is None:
            raise DaemonEnded(f"{self.name} was never started")
        return self._child.pid

    @property
    def log(self) -> str:
        return self._child.log.read_text(errors="replace") if self._child else ""

    def kill(self) -> None:
        """At once, whatever it is doing."""
        self._ended = True
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGKILL)
            self._child.close()

    def stop(self) -> None:
        self._ended = True
        if self._child is not None:
            self._child.close()

    def require_alive(self) -> None:
        if not self.alive:
            tail = "\n  ".join(self.log.splitlines()[-12:])
            raise DaemonEnded(f"{self.name} has ended. The end of its log:\n  {tail}")

    def health(self, http: HttpClient) -> dict[str, Any] | None:
        """What it says of itself, or None if it does not answer."""
        try:
            answer = json.loads(http.get(self.url, self._certificate, "/health", 1 << 16))
        except (TransportError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None
