"""Comparison of programs, public inputs and plug-ins among members, before a run.

Members with different code or public inputs would not fail: they would compute nonsense.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from opfl_chain.mpc.session import errors
from opfl_chain.mpc.session.executable import Executable
from opfl_chain.mpc.session.ranks import Rank
from opfl_chain.mpc.session.session import SessionInput
from opfl_chain.mpc.session.shares import Share
from opfl_chain.transport.errors import shown

_MAX_NAME_LENGTH = 200


@dataclass(frozen=True)
class Agreement:
    """The program that this member is about to run, with hashes of its code and public inputs."""

    name: str
    code: str
    public: str = ""
    plugins: Mapping[str, str] = field(default_factory=dict)
    """Source digests of the plug-ins that it uses, by `kind:name`, as installed here."""

    @classmethod
    def to_run(cls, executable: Executable, inputs: Mapping[str, SessionInput]) -> Agreement:
        digest = hashlib.sha256()
        for each in executable.inputs:
            value = inputs[each.name]
            if not isinstance(value, Share):  # shapes and dtypes are in the hash of the code
                digest.update(np.ascontiguousarray(value).data)
        return cls(executable.name, executable.digest, digest.hexdigest())

    def to_bytes(self) -> bytes:
        facts: dict[str, Any] = asdict(self)
        if not self.plugins:
            del facts["plugins"]
        return json.dumps(facts).encode()

    def compare(self, rank: Rank, address: str, data: bytes) -> None:
        """Raise unless a peer sent the same agreement."""
        theirs = _parse(data)
        if theirs is None:
            reason = f"a malformed agreement of {len(data)} bytes"
            raise errors.MessageInvalid(rank, address, reason)
        for plugin in sorted({*self.plugins, *theirs.plugins}):
            ours, other = self.plugins.get(plugin, ""), theirs.plugins.get(plugin, "")
            if ours != other:
                raise errors.PluginMismatch(rank, address, shown(plugin), ours, shown(other))
        if theirs != self:
            code_differs = theirs.name == self.name and theirs.code != self.code
            kind = errors.ExecutableMismatch if code_differs else errors.ProgramMismatch
            raise kind(rank, address, str(self), str(theirs))

    def __str__(self) -> str:
        code, public = shown(self.code[:12]), shown(self.public[:12]) or "none"
        return f"'{shown(self.name, _MAX_NAME_LENGTH)}' (code {code}, public inputs {public})"


def _parse(data: bytes) -> Agreement | None:
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(facts, dict):
        return None
    plugins = facts.pop("plugins", {})
    if set(facts) != {"name", "code", "public"} or not isinstance(plugins, dict):
        return None
    texts = [*facts.values(), *plugins.values()]
    return Agreement(**facts, plugins=plugins) if all(type(t) is str for t in texts) else None
