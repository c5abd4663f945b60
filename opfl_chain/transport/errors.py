"""Everything that can go wrong between processes, under one root."""

from __future__ import annotations


class TransportError(Exception):
    """The root of every error that `opfl_chain.transport` raises on its own account."""


# --- configuration


class AddressInvalid(TransportError, ValueError):
    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"address {address!r} {reason}. Addresses are host:port.")
        self.address = address


class AddressInUse(TransportError):
    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot listen at {address}: {reason}. Does another process use it?")
        self.address = address


class UrlInvalid(TransportError, ValueError):
    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url!r} {reason}. Give https://host:port, with a path if need be.")
        self.url = url


class TlsRequired(TransportError, ValueError):
    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} is not a loopback address, so it needs TLS. Give this process its "
            "certificate, its private key and the authority that signs certificates."
        )
        self.address = address


class TlsInvalid(TransportError, ValueError):
    """Certificate, key or authority that cannot be used."""


class LimitInvalid(TransportError, ValueError):
    """A limit that would let nothing through."""


class RouteInvalid(TransportError, ValueError):
    """A route that no request can reach."""


# --- requests that failed, by the peer that they were for


class PeerError(TransportError):
    def __init__(self, url: str, what: str) -> None:
        super().__init__(f"{url} {what}")
        self.url = url


class PeerUnavailable(PeerError):
    """No answer, or none in time. The request may have been carried out all the same."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, f"does not answer ({reason}). Is it running, at that address?")
        self.reason = reason


class PeerRefused(PeerError):
    """The peer answered with a status other than success, and says why."""

    def __init__(
        self, url: str, status: int, message: str, retry_after: float | None = None
    ) -> None:
        super().__init__(url, f"refused with status {status}: {message}")
        self.status = status
        self.message = message
        self.retry_after = retry_after


class AnswerTooLarge(PeerError):
    def __init__(self, url: str, allowed: int) -> None:
        super().__init__(
            url,
            f"answered with more than the {allowed} bytes that we take. It may be broken, or of "
            "another version.",
        )
        self.allowed = allowed


class AnswerMalformed(PeerError):
    """An answer that is not what was asked for."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            url, f"gave an answer that cannot be read: {reason}. Is it of another version?"
        )


class CertificateRefused(PeerError):
    """Whoever answers is not who we are looking for."""

    def __init__(self, url: str, name: str, reason: str) -> None:
        super().__init__(
            url,
            f"showed a certificate that is not one of {name!r} under our authority ({reason}). "
            "Check address and authority, and that the certificate is still valid.",
        )
        self.name = name
