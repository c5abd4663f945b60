"""Certificate, key and authority of one process, in files."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opfl_chain.transport.errors import TlsInvalid

_OLDEST: Final = ssl.TLSVersion.TLSv1_2


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
        context.minimum_version = _OLDEST
        try:
            context.load_cert_chain(self.certificate, self.private_key)
            context.load_verify_locations(self.authority)
        except (ssl.SSLError, OSError) as error:
            raise TlsInvalid(f"{', '.join(map(str, self.paths))}: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def open_server_context(self) -> ssl.SSLContext:
        """A context that shows our certificate, to anyone."""
        context = self.context(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_NONE
        return context


def client_context(authority: Path) -> ssl.SSLContext:
    """A context that shows no certificate and demands one of the authority, for a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _OLDEST
    try:
        context.load_verify_locations(authority)
    except (ssl.SSLError, OSError) as error:
        raise TlsInvalid(f"{authority} is not a file of certificates in PEM: {error}") from error
    return context


def names_of(stream: ssl.SSLSocket) -> set[str]:
    """The DNS names in the certificate that the other end showed."""
    certificate = stream.getpeercert() or {}
    names: Any = certificate.get("subjectAltName", ())
    return {name for kind, name in names if kind == "DNS"}
