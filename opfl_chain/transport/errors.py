"""Errors between processes under one root, and text of others made safe to show."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 1000


def shown(text: str, longest: int = LONGEST) -> str:
    """Return the text on one line, unprintable characters escaped, cut to `longest`."""
    escaped = "".join(_escaped(character) for character in text[: longest + 1])
    return escaped if len(escaped) <= longest else f"{escaped[: longest - 3]}..."


def _escaped(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


class TransportError(Exception):
    """The base class of all errors that `opfl_chain.transport` raises."""


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
        super().__init__(f"{url!r} {reason}. Give https://host:port, optionally with a path.")
        self.url = url


class TlsRequired(TransportError, ValueError):
    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} is not a loopback address, so it needs TLS. Give this process its "
            "certificate, its private key and the authority that signs certificates."
        )
        self.address = address


class TlsInvalid(TransportError, ValueError):
    """A certificate, key or authority that cannot be used."""


class LimitInvalid(TransportError, ValueError):
    """A limit that would refuse every request."""


class RouteInvalid(TransportError, ValueError):
    """A route that no request can reach."""


# --- failed requests, with the URL of the peer


class PeerError(TransportError):
    def __init__(self, url: str, what: str) -> None:
        super().__init__(f"{url} {what}")
        self.url = url


class PeerUnavailable(PeerError):
    """The peer did not respond in time. It may have executed the request nevertheless."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, f"does not answer ({reason}). Is it running, at that address?")
        self.reason = reason


class PeerTimedOut(PeerUnavailable):
    """The peer is there, or seems to be, and did not respond in time."""


class PeerRefused(PeerError):
    """The peer answered with an error status and a reason."""

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
            f"sent a response larger than the {allowed} bytes allowed. It may be faulty or run "
            "another version.",
        )
        self.allowed = allowed


class AnswerMalformed(PeerError):
    """A response that cannot be parsed."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, f"sent a malformed response: {reason}. Does it run another version?")


class CertificateRefused(PeerError):
    """The responding process is not the expected peer."""

    def __init__(self, url: str, name: str, reason: str) -> None:
        super().__init__(
            url,
            f"has a certificate that is not valid for {name!r} under our authority ({reason}). "
            "Check the address, the authority and the expiry of the certificate.",
        )
        self.name = name
