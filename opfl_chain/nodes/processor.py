"""Processor time that a process has used."""

from __future__ import annotations

import os
from pathlib import Path

_USER, _SYSTEM = 11, 12
"""Places in /proc/PID/stat after the name, which may itself have spaces."""


def seconds_of(process: int | None) -> float:
    """Of one that is alive, where the system tells; zero otherwise."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
