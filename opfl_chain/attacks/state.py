"""What an attacker remembers between rounds, in a form that a daemon can keep on disk."""

from __future__ import annotations

import io
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from opfl_chain.attacks.errors import StateDamaged

Vector = NDArray[np.float32]

KEPT = 2
"""Rounds that a thing is remembered of: the current one, which may be repeated, and the last."""


class AttackState:
    """Vectors by name and round. Only the latest rounds of each name stay."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[int, Vector]] = {}

    def remember(self, name: str, t: int, vector: Vector) -> None:
        rounds = self._kept.setdefault(name, {})
        rounds[t] = np.array(vector, np.float32)
        for old in sorted(rounds)[:-KEPT]:
            del rounds[old]

    def latest(self, name: str, before: int) -> tuple[int, Vector] | None:
        """The last round before this one that the name was remembered of, and its vector."""
        found = max((t for t in self._kept.get(name, {}) if t < before), default=None)
        return None if found is None else (found, self._kept[name][found])

    def to_bytes(self) -> bytes:
        stream = io.BytesIO()
        vectors = {
            f"{name}@{t}": vector
            for name, rounds in self._kept.items()
            for t, vector in rounds.items()
        }
        np.savez(stream, **vectors)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> AttackState:
        state = cls()
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as stored:
                for key in stored.files:
                    name, _, t = key.rpartition("@")
                    state.remember(name, int(t), stored[key])
        except (OSError, ValueError, EOFError, BadZipFile, TypeError) as error:
            raise StateDamaged(str(error)) from error
        return state
