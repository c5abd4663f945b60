"""Parts of requests to a member that several endpoints read."""

from __future__ import annotations

from http import HTTPStatus

from opfl_chain.chain.rpc import unhex
from opfl_chain.protocol.identifiers import RoundId, job_and_number
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.routes import Refusal, Request


def round_in(node: Node, request: Request) -> RoundView:
    """Return the round that a request names."""
    text = request.parts["round"]
    # Python refuses to read numbers of thousands of digits.
    if text.isascii() and text.isdecimal() and len(text) < 30 and int(text) < 1 << 96:
        job, number = job_and_number(RoundId(int(text)))
        if job == node.job.id and (found := node.view.round(number)):
            return found
    raise Refusal(HTTPStatus.NOT_FOUND, f"no round {text!r:.40} is known here (yet)")


def signature_in(request: Request) -> bytes:
    """Return the signature of a request's body, empty if there is none."""
    try:
        return unhex(request.headers.get("opfl-signature", ""))
    except ValueError:
        return b""
