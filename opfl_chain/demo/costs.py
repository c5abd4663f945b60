"""What each daemon spent, as it says itself: its last health, or the last line of its log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from opfl_chain.localnet.localnet import Localnet


@dataclass(frozen=True)
class Cost:
    """Bytes are bodies of messages; what members sent each other inside MPC is counted apart."""

    gas: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    mpc_bytes_sent: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )

    @property
    def report(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, "cpu_seconds": round(self.cpu_seconds, 2)}


class Costs:
    """Of daemons that may be killed: what one said before it died is added to the rest."""

    def __init__(self, net: Localnet) -> None:
        self._net = net
        self._before: dict[str, Cost] = {}

    def note(self, name: str) -> None:
        """Ask a daemon what it has spent, before it is killed."""
        if (health := self._net.health(name)) is not None:
            self._before[name] = self._before.get(name, Cost()) + _cost(health)

    def by_daemon(self, gas: Mapping[str, int]) -> dict[str, Cost]:
        spent = {}
        for name in self._net.daemons:
            ended = last_words(self._net.folder, name)
            own = Cost(gas=gas.get(name, 0)) + self._before.get(name, Cost())
            spent[name] = own + (_cost(ended) if ended else Cost())
        return spent


def by_role(spent: Mapping[str, Cost]) -> dict[str, Cost]:
    """Names are `client-0`, `member-2`, `server`."""
    roles: dict[str, Cost] = {}
    for name, cost in spent.items():
        role = name.partition("-")[0]
        roles[role] = roles.get(role, Cost()) + cost
    return roles


def last_words(folder: Path, name: str) -> dict[str, Any] | None:
    """What a daemon logged when it ended, if it ended by itself."""
    logs = sorted(folder.glob(f"{name}-*.log"), key=lambda log: int(log.stem.rpartition("-")[2]))
    found = None
    for line in logs[-1].read_text(errors="replace").splitlines() if logs else ():
        entry = _object(line)
        if entry.get("event") == "ended":
            found = entry
    return found


def accuracies(said: Mapping[str, Any] | None) -> dict[int, float]:
    """By how many updates the model had, from what the server said."""
    found = (said or {}).get("accuracies", {})
    return {int(updates): float(accuracy) for updates, accuracy in found.items()}


def _cost(said: Mapping[str, Any]) -> Cost:
    return Cost(
        bytes_sent=int(said.get("bytes_sent", 0)),
        bytes_received=int(said.get("bytes_received", 0)),
        mpc_bytes_sent=int(said.get("mpc_bytes_sent", 0)),
        cpu_seconds=float(said.get("cpu_seconds", 0)) + float(said.get("mpc_cpu_seconds", 0)),
    )


def _object(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
