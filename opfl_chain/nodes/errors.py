"""What can go wrong in a daemon, under one root."""

from __future__ import annotations

from pathlib import Path


class NodeError(Exception):
    """The root of every error that `opfl_chain.nodes` raises on its own account."""


class SettingsInvalid(NodeError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class JobUnusable(NodeError):
    """The job on the chain is not one that this daemon can take part in."""


class ModelMissing(NodeError):
    """Nobody who was asked has the model that the chain names."""


class StateForeign(NodeError):
    """A state folder belongs to another job or account."""
