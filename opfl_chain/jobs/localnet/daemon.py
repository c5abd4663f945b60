"""The process of a daemon in a job on one machine, and the errors of such jobs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from opfl_chain.roles.progress import ENDING
from opfl_chain.system.child import Child
from opfl_chain.system.template import Copy, Template
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import TransportError

_ENVIRONMENT = {"OMP_NUM_THREADS": "1"}
_MODULES = (
    "opfl_chain.cli.daemons",
    "opfl_chain.roles.client.client",
    "opfl_chain.roles.member.member",
    "opfl_chain.roles.server.server",
    "opfl_chain.numerics.loading:load_kernels",
)
"""Modules that daemons load before they look at their settings, or soon after."""


class LocalnetError(Exception):
    """The root of every error of this package."""


class PlanInvalid(LocalnetError):
    """The plan does not describe a job."""


class DaemonEnded(LocalnetError):
    """A process that should be running has ended."""


class NoProgress(LocalnetError):
    """The job made no progress in time."""


class DataMissing(LocalnetError):
    """The data set of the job is not available."""


def template_of_daemons(log: Path) -> Template:
    """Load what all daemons need, once, instead of in every process."""
    return Template("opfl_chain.cli:main", _MODULES, log, _ENVIRONMENT)


class Daemon:
    """A daemon's process. `name` is that of its settings file.

    With a template it is a copy of that, else a new process. Both do the same.
    """

    def __init__(self, role: str, name: str, settings: Path, url: str, certificate: str) -> None:
        self.role = role
        self.name = name
        self.url = url
        self._settings = settings
        self._certificate = certificate
        self._starts = 0
        self._ended = True
        self._child: Child | Copy | None = None
        self.template: Template | None = None
        self.is_leaving = False
        """Set when the daemon has announced that it will do nothing any more."""

    def start(self) -> None:
        self._starts += 1
        self._ended = self.is_leaving = False
        log = self._settings.with_name(f"{self.name}-{self._starts}.log")
        if self.template is not None:
            self._child = self.template.start([self.role, str(self._settings)], log)
        else:
            program = [sys.executable, "-m", "opfl_chain.cli"]
            self._child = Child([*program, self.role, self._settings], log, env=_ENVIRONMENT)

    @property
    def started(self) -> bool:
        """Return whether the process should be running."""
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
        """Kill the process at once, whatever it is doing."""
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
        """Return the daemon's health, or None if it does not answer."""
        try:
            answer = json.loads(http.get(self.url, self._certificate, "/health", 1 << 16))
        except (TransportError, ValueError):
            return None
        if not isinstance(answer, dict):
            return None
        self.is_leaving = answer.get("busy") == ENDING
        return answer
