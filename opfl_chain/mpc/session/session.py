"""The interface of a member's session with its peers.

All members make the same calls in the same order. `Runtime` executes them over a link;
`PartySession` forwards them to a `Runtime` in another process. A procedure is a function whose
first argument is a `Runtime`: it runs in the link's process, so that its messages take no detour.
Its other arguments and its result are annotated with types that the codec can send.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from opfl_chain.mpc.session.errors import ProgramFailed
from opfl_chain.mpc.session.executable import Executable
from opfl_chain.mpc.session.ranks import Rank
from opfl_chain.mpc.session.shares import Share, Words
from opfl_chain.mpc.session.statistics import RunStatistics

SessionInput = Words | Share
"""The array itself for a public input, this member's share for a secret one."""

P = ParamSpec("P")
T = TypeVar("T")
Procedure = Callable[Concatenate[Any, P], T]
_PACKAGE = "opfl_chain"
_RUN_BY_PROCEDURES = ("circuits", "learning", "mpc", "protocol", "rules")


@dataclass(frozen=True)
class RunResult:
    """This member's shares of the outputs by name, and the cost of the run."""

    outputs: dict[str, Share]
    statistics: RunStatistics


class Session(Protocol):
    """One member's side of a session."""

    @property
    def rank(self) -> Rank: ...

    def run(self, executable: Executable, inputs: Mapping[str, SessionInput]) -> RunResult:
        """Run an executable, after checking that all members hold the same one."""

    def open(self, share: Share, fraction_bits: int) -> Words:
        """Reveal one array to all members."""

    def open_all(self, shares: Sequence[Share], fraction_bits: int) -> list[Words]:
        """Reveal several arrays to all members, in one exchange of messages."""

    def call(self, procedure: Procedure[P, T], *args: P.args, **arguments: P.kwargs) -> T:
        """Run a procedure and return its result. Arguments are passed by name."""


def name_of(procedure: Callable[..., Any]) -> str:
    """Return `module:name`, by which the SPU process finds a procedure."""
    name = f"{procedure.__module__}:{procedure.__qualname__}"
    if find_procedure(name) is not procedure:
        raise ProgramFailed(name, "only a function of a module can be called in another process")
    return name


def find_procedure(name: str) -> Callable[..., Any]:
    module, _, path = name.partition(":")
    if module.partition(".")[0] != _PACKAGE or "<" in path:
        raise ProgramFailed(name, f"procedures must be named functions of modules of {_PACKAGE}")
    found: Any = reduce(getattr, path.split("."), importlib.import_module(module))
    procedure: Callable[..., Any] = found
    return procedure


@cache
def source_digest() -> str:
    """Return the hash of the sources that procedures run: members must have the same version.

    Plug-ins are not part of it: members compare those that the policy names with their findings.
    """
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    files = (file for part in _RUN_BY_PROCEDURES for file in (root / part).rglob("*.py"))
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return digest.hexdigest()
