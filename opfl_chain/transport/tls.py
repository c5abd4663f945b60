"""TLS files and contexts of one process."""

from __future__ import annotations

import errno
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opfl_chain.transport.errors import TlsInvalid

_OLDEST: Final = ssl.TLSVersion.TLSv1_2


@dataclass(frozen=True)
class TlsFiles:
    """PEM files of a certificate, its key and the authority."""

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
        """Return a context with our certificate that requires one from the same authority."""
        context = ssl.SSLContext(protocol)
        context.sslsocket_class = _ClosingSocket
        context.minimum_version = _OLDEST
        try:
            context.load_cert_chain(self.certificate, self.private_key)
            context.load_verify_locations(self.authority)
        except (ssl.SSLError, OSError) as error:
            raise TlsInvalid(f"{', '.join(map(str, self.paths))}: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def http_server_context(self) -> ssl.SSLContext:
        """Return a server context with our certificate. Peers may show theirs, and need not."""
        context = self.context(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


class _ClosingSocket(ssl.SSLSocket):
    def getpeername(self) -> Any:
        """Asked before the handshake; if the peer is gone by then, Python forgets to close us."""
        try:
            return super().getpeername()
        except OSError as error:
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, str(error)) from error


def client_context(authority: Path, own: TlsFiles | None = None) -> ssl.SSLContext:
    """Return a context that requires the peer's certificate to match its name, and shows ours."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = _ClosingSocket
    context.minimum_version = _OLDEST
    try:
        context.load_verify_locations(authority)
    except (ssl.SSLError, OSError) as error:
        raise TlsInvalid(f"{authority} is not a PEM certificate file: {error}") from error
    if own is not None:
        context.load_cert_chain(own.certificate, own.private_key)
    return context


def names_of(stream: ssl.SSLSocket) -> set[str]:
    """Return the DNS names in the peer's certificate."""
    certificate = stream.getpeercert() or {}
    names: Any = certificate.get("subjectAltName", ())
    return {name for kind, name in names if kind == "DNS"}
