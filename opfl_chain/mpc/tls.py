"""Mutual TLS between members.

One authority signs the members' certificates. Each certificate has the DNS name `member-0`,
`member-1` or `member-2`, so that no member can pass for another: a member that is two of the three
would learn every secret.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opfl_chain.mpc.errors import TlsInvalid
from opfl_chain.mpc.ranks import Rank


def certificate_name(rank: Rank) -> str:
    """The DNS name in a member's certificate."""
    return f"member-{rank}"


@dataclass(frozen=True)
class TlsFiles:
    """PEM files."""

    certificate: Path
    private_key: Path
    authority: Path

    def __post_init__(self) -> None:
        for path in self.paths:
            if not path.is_file():
                raise TlsInvalid(f"{path} does not exist")
        self.context(ssl.PROTOCOL_TLS_CLIENT)

    @property
    def paths(self) -> tuple[Path, Path, Path]:
        return self.certificate, self.private_key, self.authority

    def context(self, protocol: int) -> ssl.SSLContext:
        """A context that shows our certificate and demands one of the authority."""
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.private_key)
            context.load_verify_locations(self.authority)
        except (ssl.SSLError, OSError) as error:
            raise TlsInvalid(f"{', '.join(map(str, self.paths))}: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
        return context


def names_of(stream: ssl.SSLSocket) -> set[str]:
    """The DNS names in the certificate that the other end showed."""
    certificate = stream.getpeercert() or {}
    names: Any = certificate.get("subjectAltName", ())
    return {name for kind, name in names if kind == "DNS"}
