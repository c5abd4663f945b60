"""What peers answer, read within bounds."""

from __future__ import annotations

from typing import Final

import httpx

from opfl_chain.transport.errors import AnswerMalformed, AnswerTooLarge, PeerRefused
from opfl_chain.transport.foreign_text import shown
from opfl_chain.transport.messages import parse_json

_REASON_BYTES: Final = 4096
_LONGEST_WAIT: Final = 3600.0


def read_body(answer: httpx.Response, most_bytes: int) -> bytes:
    """All of it, as it was sent: nothing is decompressed."""
    url, stated = str(answer.url), answer.headers.get("Content-Length")
    if stated is None and "Transfer-Encoding" not in answer.headers:
        raise AnswerMalformed(url, "it does not say how long it is")
    if stated is not None and int(stated) > most_bytes:  # h11 has checked that it is a number
        raise AnswerTooLarge(url, most_bytes)
    body = bytearray()
    for chunk in answer.iter_raw():
        body += chunk
        if len(body) > most_bytes:
            raise AnswerTooLarge(url, most_bytes)
    return bytes(body)


def refusal_in(answer: httpx.Response) -> PeerRefused:
    """Why the peer refuses, as far as it says so."""
    try:
        body = read_body(answer, _REASON_BYTES)
        message = parse_json(body)["error"]
    except (AnswerMalformed, AnswerTooLarge, ValueError, LookupError, TypeError):
        message = answer.reason_phrase
    return PeerRefused(str(answer.url), answer.status_code, shown(str(message)), _wait_in(answer))


def _wait_in(answer: httpx.Response) -> float | None:
    stated = answer.headers.get("Retry-After", "")
    if not (stated.isascii() and stated.isdecimal()):
        return None
    return min(float(stated[:10]), _LONGEST_WAIT)
