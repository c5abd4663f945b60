"""Asks peers over HTTP, and believes only those with the right certificate.

Each request has its own connection. A pool would hand a connection that was made to one name to a
request for another; and proxies, which know nothing of our names, are never asked.
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from types import TracebackType
from typing import Final

import httpx

from opfl_chain.transport.addresses import is_loopback
from opfl_chain.transport.answers import read_body, refusal_in
from opfl_chain.transport.cutoff import Cutoff
from opfl_chain.transport.errors import (
    CertificateRefused,
    PeerRefused,
    PeerUnavailable,
    TlsRequired,
    UrlInvalid,
)
from opfl_chain.transport.foreign_text import shown
from opfl_chain.transport.messages import BYTES_TYPE
from opfl_chain.transport.tls import client_context

_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0
_PASSING: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
"""Refusals that may be over in a moment."""
_URL_SHOWN: Final = 200


@dataclass(frozen=True)
class _Question:
    method: str
    target: httpx.URL
    name: str
    max_bytes: int
    headers: Mapping[str, str]
    body: bytes | None = None


class HttpClient:
    """Safe to share between threads. Without an authority it speaks plainly, and only to loopback.

    A request takes `seconds` at most, of which `connect_seconds` to connect; one that may be
    repeated is tried `attempts` times.
    """

    def __init__(
        self,
        tls_authority: Path | None,
        seconds: float = 60.0,
        connect_seconds: float = 5.0,
        attempts: int = 3,
    ) -> None:
        self._secure = tls_authority is not None
        self._seconds = seconds
        self._attempts = attempts
        self._http = httpx.Client(
            verify=client_context(tls_authority) if tls_authority else _trusting_nobody(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(seconds, connect=min(connect_seconds, seconds)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            headers={"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "opfl"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    def get(
        self,
        url: str,
        name: str,
        path: str,
        max_bytes: int,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The body at `path` under `url`, from the peer whose certificate has the DNS `name`."""
        target = self._target(url, path)
        return self._ask(_Question("GET", target, name, max_bytes, headers or {}), self._attempts)

    def post(
        self,
        url: str,
        name: str,
        path: str,
        body: bytes,
        max_bytes: int,
        *,
        headers: Mapping[str, str] | None = None,
        content_type: str = BYTES_TYPE,
        idempotent: bool = False,
    ) -> bytes:
        """The peer's answer to the body. Tried again only if that does no harm: `idempotent`."""
        target, headers = self._target(url, path), {"Content-Type": content_type, **(headers or {})}
        question = _Question("POST", target, name, max_bytes, headers, body)
        return self._ask(question, self._attempts if idempotent else 1)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, question: _Question, attempts: int) -> bytes:
        for attempt in range(1, attempts):
            try:
                return self._ask_once(question)
            except PeerUnavailable:
                wait = None
            except PeerRefused as error:
                if error.status not in _PASSING:
                    raise
                wait = error.retry_after
            time.sleep(_pause(attempt, wait))
        return self._ask_once(question)

    def _ask_once(self, question: _Question) -> bytes:
        with Cutoff(self._seconds) as cutoff:
            try:
                with self._http.stream(
                    question.method,
                    question.target,
                    content=question.body,
                    headers=question.headers,
                    extensions={"sni_hostname": question.name, "trace": cutoff.trace},
                ) as answer:
                    if answer.is_success:
                        return read_body(answer, question.max_bytes)
                    raise refusal_in(answer)
            except httpx.HTTPError as error:
                url = str(question.target)
                if refused := _certificate_error(error):
                    raise CertificateRefused(url, question.name, refused) from error
                late = f"it takes longer than {self._seconds:.3g} s" if cutoff.passed else ""
                reason = late or str(error) or type(error).__name__
                raise PeerUnavailable(url, shown(reason)) from error

    def _target(self, url: str, path: str) -> httpx.URL:
        try:
            base = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise UrlInvalid(shown(url, _URL_SHOWN), f"is no URL ({error})") from error
        if base.scheme not in ("https", "http") or not base.host:
            raise UrlInvalid(shown(url, _URL_SHOWN), "is no URL of HTTPS")
        if base.port is not None and base.port not in range(1, 1 << 16):
            raise UrlInvalid(shown(url, _URL_SHOWN), "has a port that is not from 1 to 65535")
        if base.userinfo or base.query or base.fragment:
            raise UrlInvalid(shown(url, _URL_SHOWN), "has more than host, port and path")
        if base.scheme == "http" and not self._secure and not is_loopback(base.host):
            raise TlsRequired(shown(url, _URL_SHOWN))
        if (base.scheme == "https") != self._secure:
            with_authority = "an authority is set" if self._secure else "no authority is set"
            raise UrlInvalid(shown(url, _URL_SHOWN), f"does not fit, because {with_authority}")
        return base.copy_with(raw_path=f"{base.path.rstrip('/')}{path}".encode())


def _trusting_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _pause(attempt: int, wanted: float | None) -> float:
    """Longer every time, and not the same for all who wait."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
    return max(random.uniform(longest / 2, longest), min(wanted or 0.0, _LONGEST_PAUSE))


def _certificate_error(error: BaseException) -> str | None:
    """What is wrong with the peer's certificate, if that is why the request failed."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause.verify_message if cause else None
