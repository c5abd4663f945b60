"""What members compare before they run something together.

Members with other code, or with other public inputs, would not fail: they would compute nonsense.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from opfl_chain.mpc.errors import ExecutableMismatch, MessageInvalid, ProgramMismatch
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.ranks import Rank
from opfl_chain.mpc.session import SessionInput
from opfl_chain.mpc.shares import Share
from opfl_chain.transport.foreign_text import shown

_LONGEST_NAME = 200


@dataclass(frozen=True)
class Agreement:
    """What this member is about to run, by hashes of the code and of all public inputs."""

    name: str
    code: str
    public: str = ""

    @classmethod
    def to_run(cls, executable: Executable, inputs: Mapping[str, SessionInput]) -> Agreement:
        digest = hashlib.sha256()
        for each in executable.inputs:
            value = inputs[each.name]
            if not isinstance(value, Share):  # shapes and dtypes are in the hash of the code
                digest.update(np.ascontiguousarray(value).data)
        return cls(executable.name, executable.digest, digest.hexdigest())

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def compare(self, rank: Rank, address: str, data: bytes) -> None:
        """Raise unless a peer sent the same."""
        theirs = _parse(data)
        if theirs is None:
            reason = f"{len(data)} bytes that do not say what it is about to run"
            raise MessageInvalid(rank, address, reason)
        if theirs != self:
            code_differs = theirs.name == self.name and theirs.code != self.code
            kind = ExecutableMismatch if code_differs else ProgramMismatch
            raise kind(rank, address, str(self), str(theirs))

    def __str__(self) -> str:
        code, public = shown(self.code[:12]), shown(self.public[:12]) or "none"
        return f"'{shown(self.name, _LONGEST_NAME)}' (code {code}, public inputs {public})"


def _parse(data: bytes) -> Agreement | None:
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return None
    keys = {"name", "code", "public"}
    if not isinstance(facts, dict) or set(facts) != keys:
        return None
    return Agreement(**facts) if all(isinstance(each, str) for each in facts.values()) else None
