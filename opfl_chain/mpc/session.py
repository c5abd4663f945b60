"""What a member can do together with its peers.

All members make the same calls in the same order. `Runtime` does them over a link; `PartySession`
has the `Runtime` of another process do them. A procedure is a function whose first argument is a
`Runtime`: it runs next to the link, so that its messages take no detour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.ranks import Rank
from opfl_chain.mpc.shares import Share, Words
from opfl_chain.mpc.statistics import RunStatistics

SessionInput = Words | Share
"""The array itself for a public input, this member's share for a secret one."""

Procedure = Callable[..., Any]


@dataclass(frozen=True)
class RunResult:
    """This member's shares of the outputs, by name, and what they cost."""

    outputs: dict[str, Share]
    statistics: RunStatistics


class Session(Protocol):
    """One member's side of a session."""

    @property
    def rank(self) -> Rank: ...

    def run(self, executable: Executable, inputs: Mapping[str, SessionInput]) -> RunResult:
        """Run an executable, after the members have found that they hold the same one."""

    def open(self, share: Share, fraction_bits: int) -> Words:
        """Reveal one array to all members."""

    def open_all(self, shares: Sequence[Share], fraction_bits: int) -> list[Words]:
        """Reveal several arrays to all members, in one exchange of messages."""

    def call(self, procedure: Procedure, **arguments: Any) -> Any:
        """Run a procedure. Arguments and result are made of what `values.py` can encode."""
