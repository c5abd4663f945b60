"""Routes that serve content by its hash: models and aggregates."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from opfl_chain.chain.rpc import unhex
from opfl_chain.roles.model_store import Models
from opfl_chain.transport.routes import Refusal, Request, Response, Route

_HASH_CHARACTERS = 66


def content_routes(models: Models) -> list[Route]:
    def model(wanted: bytes) -> bytes | None:
        weights = models.weights(wanted)
        return None if weights is None else weights.astype("<f4").tobytes()

    return [
        Route("GET", "/models/{hash}", serve(model)),
        Route("GET", "/aggregates/{hash}", serve(models.aggregate)),
    ]


def serve(find: Callable[[bytes], bytes | None]) -> Callable[[Request], Response]:
    """Return a handler that looks up the hash in its path."""

    def handler(request: Request) -> Response:
        text = request.parts["hash"]
        try:
            wanted = unhex(text) if len(text) == _HASH_CHARACTERS else b""
        except ValueError:
            wanted = b""
        if not wanted or (found := find(wanted)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "no content with this hash")
        return Response.binary(found)

    return handler
