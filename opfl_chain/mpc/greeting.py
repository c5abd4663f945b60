"""What members say to each other when they meet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from opfl_chain.mpc.ranks import Rank

PURPOSES: Final = ("watch", "wire")
"""What connections are for: to watch each other, and for messages beside SPU's link."""
_VERSION: Final = 1
_PORTS: Final = range(1, 1 << 16)
_NONCE: Final = re.compile(r"[0-9a-f]{32}")
_LONGEST_REASON: Final = 1000


class Refused(Exception):
    """The other end is not a peer of ours at this audit."""


@dataclass(frozen=True)
class Hello:
    """What members tell each other."""

    audit: str
    rank: Rank
    link_port: int
    nonce: str
    """New for each attempt to meet."""

    def to_json(self, purpose: str) -> dict[str, object]:
        return {
            "version": _VERSION,
            "purpose": purpose,
            "audit": self.audit,
            "rank": self.rank,
            "link_port": self.link_port,
            "nonce": self.nonce,
        }

    @classmethod
    def from_json(cls, document: dict[str, object]) -> Hello:
        if "refused" in document:
            raise Refused(_printable(document["refused"]))
        if document.get("version") != _VERSION:
            raise Refused(f"it speaks version {document.get('version')!r:.20}, and we {_VERSION}")
        hello = (document.get(name) for name in ("audit", "rank", "link_port", "nonce"))
        match tuple(hello):
            case (str(audit), int(rank), int(port), str(nonce)) if (
                bool not in (type(rank), type(port)) and port in _PORTS and _NONCE.fullmatch(nonce)
            ):
                return cls(audit, rank, port, nonce)
        raise Refused("its greeting is malformed")


def _printable(reason: object) -> str:
    """What a stranger says, if it can be shown in a line of text."""
    if not isinstance(reason, str) or not reason.isprintable():
        return "it refused us, for a reason that cannot be shown"
    return reason[:_LONGEST_REASON]
