"""HTTP client with deadlines, size limits and retries."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Final

import httpx

from opfl_chain.system.closing import Closing
from opfl_chain.transport import errors
from opfl_chain.transport.addresses import is_loopback
from opfl_chain.transport.deadline import Cutoff
from opfl_chain.transport.routes import BYTES_TYPE, parse_json
from opfl_chain.transport.tls import TlsFiles, client_context

_REASON_BYTES: Final = 4096
_LONGEST_WAIT: Final = 3600.0
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0
_PASSING: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
"""Temporary refusals, which are retried."""
_URL_SHOWN: Final = 200


def read_body(answer: httpx.Response, most_bytes: int) -> bytes:
    """Return the whole body as sent, without decompression."""
    url, stated = str(answer.url), answer.headers.get("Content-Length")
    if stated is None and "Transfer-Encoding" not in answer.headers:
        raise errors.AnswerMalformed(url, "it has neither Content-Length nor Transfer-Encoding")
    if stated is not None and int(stated) > most_bytes:  # h11 has checked that it is a number
        raise errors.AnswerTooLarge(url, most_bytes)
    body = bytearray()
    for chunk in answer.iter_raw():
        body += chunk
        if len(body) > most_bytes:
            raise errors.AnswerTooLarge(url, most_bytes)
    return bytes(body)


def refusal_in(answer: httpx.Response) -> errors.PeerRefused:
    """Return the refusal with the reason that the peer gives, if any."""
    try:
        body = read_body(answer, _REASON_BYTES)
        message = parse_json(body)["error"]
    except (errors.AnswerMalformed, errors.AnswerTooLarge, ValueError, LookupError, TypeError):
        message = answer.reason_phrase
    return errors.PeerRefused(
        str(answer.url), answer.status_code, errors.shown(str(message)), _wait_in(answer)
    )


def _wait_in(answer: httpx.Response) -> float | None:
    stated = answer.headers.get("Retry-After", "")
    if not (stated.isascii() and stated.isdecimal()):
        return None
    return min(float(stated[:10]), _LONGEST_WAIT)


@dataclass(frozen=True)
class _Question:
    method: str
    target: httpx.URL
    name: str
    max_bytes: int
    headers: Mapping[str, str]
    seconds: float
    body: bytes | None = None


class HttpClient(Closing):
    """Thread-safe HTTP client. Without an authority it uses plain HTTP, and only to loopback.

    A request takes at most `seconds`, its own or these, including up to `connect_seconds` to
    connect. Idempotent requests are tried up to `attempts` times. With `own` it shows its
    certificate, for which servers reserve connections.
    """

    def __init__(
        self,
        tls_authority: Path | None,
        seconds: float = 60.0,
        connect_seconds: float = 5.0,
        attempts: int = 3,
        own: TlsFiles | None = None,
    ) -> None:
        self._secure = tls_authority is not None
        self._seconds = seconds
        self._connect_seconds = connect_seconds
        self._attempts = attempts
        self._http = httpx.Client(
            verify=client_context(tls_authority, own) if tls_authority else _empty_trust(),
            trust_env=False,
            follow_redirects=False,
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
        seconds: float | None = None,
    ) -> bytes:
        """Return the body at `path` under `url`; the peer's certificate must be for DNS `name`."""
        question = _Question(
            "GET", self._target(url, path), name, max_bytes, headers or {}, seconds or self._seconds
        )
        return self._ask(question, self._attempts)

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
        seconds: float | None = None,
    ) -> bytes:
        """Send the body and return the response. Retried only if `idempotent`."""
        target, headers = self._target(url, path), {"Content-Type": content_type, **(headers or {})}
        question = _Question(
            "POST", target, name, max_bytes, headers, seconds or self._seconds, body
        )
        return self._ask(question, self._attempts if idempotent else 1)

    def close(self) -> None:
        self._http.close()

    def _ask(self, question: _Question, attempts: int) -> bytes:
        for attempt in range(1, attempts):
            try:
                return self._ask_once(question)
            except errors.PeerUnavailable:
                wait = None
            except errors.PeerRefused as error:
                if error.status not in _PASSING:
                    raise
                wait = error.retry_after
            time.sleep(_pause(attempt, wait))
        return self._ask_once(question)

    def _ask_once(self, question: _Question) -> bytes:
        seconds = question.seconds
        with Cutoff(seconds) as cutoff:
            try:
                with self._http.stream(
                    question.method,
                    question.target,
                    content=question.body,
                    headers=question.headers,
                    timeout=httpx.Timeout(seconds, connect=min(self._connect_seconds, seconds)),
                    extensions={"sni_hostname": question.name, "trace": cutoff.trace},
                ) as answer:
                    if answer.is_success:
                        return read_body(answer, question.max_bytes)
                    raise refusal_in(answer)
            except httpx.HTTPError as error:
                url = str(question.target)
                if refused := _certificate_error(error):
                    raise errors.CertificateRefused(url, question.name, refused) from error
                if cutoff.passed:
                    raise errors.PeerTimedOut(url, f"timed out after {seconds:.3g} s") from error
                reason = errors.shown(str(error) or type(error).__name__)
                if isinstance(error, httpx.TimeoutException):
                    raise errors.PeerTimedOut(url, reason) from error
                raise errors.PeerUnavailable(url, reason) from error

    def _target(self, url: str, path: str) -> httpx.URL:
        try:
            base = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise errors.UrlInvalid(
                errors.shown(url, _URL_SHOWN), f"is not a URL ({error})"
            ) from error
        if base.scheme not in ("https", "http") or not base.host:
            raise errors.UrlInvalid(errors.shown(url, _URL_SHOWN), "is not an HTTPS URL")
        if base.port is not None and base.port not in range(1, 1 << 16):
            raise errors.UrlInvalid(
                errors.shown(url, _URL_SHOWN), "has a port that is not from 1 to 65535"
            )
        if base.userinfo or base.query or base.fragment:
            raise errors.UrlInvalid(
                errors.shown(url, _URL_SHOWN), "has more than host, port and path"
            )
        if base.scheme == "http" and not self._secure and not is_loopback(base.host):
            raise errors.TlsRequired(errors.shown(url, _URL_SHOWN))
        if (base.scheme == "https") != self._secure:
            with_authority = "an authority is set" if self._secure else "no authority is set"
            raise errors.UrlInvalid(
                errors.shown(url, _URL_SHOWN), f"has a wrong scheme because {with_authority}"
            )
        return base.copy_with(raw_path=f"{base.path.rstrip('/')}{path}".encode())


def _empty_trust() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _pause(attempt: int, wanted: float | None) -> float:
    """Exponential backoff with jitter, at least as long as the peer asked for."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
    return max(random.uniform(longest / 2, longest), min(wanted or 0.0, _LONGEST_PAUSE))


def _certificate_error(error: BaseException) -> str | None:
    """Return the certificate's defect if that made the request fail, else None."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause.verify_message if cause else None
