"""Parts of requests to a member that several endpoints read."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from opfl_chain.chain.rpc import unhex
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.protocol.identifiers import RoundId, job_and_number
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.routes import Refusal, Request

_MOST_SLOT: Final = (1 << 32) - 1


def round_in(node: Node, request: Request) -> RoundView:
    """Return the round that a request names."""
    text = request.parts["round"]
    # Python refuses to read numbers of thousands of digits.
    if text.isascii() and text.isdecimal() and len(text) < 30 and int(text) < 1 << 96:
        job, number = job_and_number(RoundId(int(text)))
        if job == node.job.id and (found := node.view.round(number)):
            return found
    raise Refusal(HTTPStatus.NOT_FOUND, f"there is no round {text!r:.40} here yet")


def signature_in(request: Request) -> bytes:
    """Return the signature of a request's body, empty if there is none."""
    try:
        return unhex(request.headers.get("opfl-signature", ""))
    except ValueError:
        return b""


def slot_in(request: Request) -> int:
    """Return the slot that a request names."""
    return _number(request, "slot", _MOST_SLOT)


def seat_in(request: Request) -> int:
    """Return the seat that a request names."""
    return _number(request, "seat", MEMBERS - 1)


def _number(request: Request, name: str, most: int) -> int:
    text = request.parts[name]
    if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and int(text) <= most:
        return int(text)
    raise Refusal(HTTPStatus.NOT_FOUND, f"{name} is {text!r:.20}, it must be from 0 to {most}")
