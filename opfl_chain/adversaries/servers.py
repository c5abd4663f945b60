"""Servers that break the protocol, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from opfl_chain.adversaries.clients import cheats_of
from opfl_chain.roles.evidence import SignedResult
from opfl_chain.roles.node import Moment
from opfl_chain.roles.round_driver import RoundDriver
from opfl_chain.roles.server.server import Server
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.routes import Refusal, Request, Response, Route


class ServesWrongModels(Server):
    """Sends everyone models with one number changed."""

    def routes(self) -> list[Route]:
        return [
            replace(each, handler=_spoiled(each.handler))
            if each.pattern.startswith("/models")
            else each
            for each in super().routes()
        ]


class WithholdsModels(Server):
    """Serves no model, so that clients would come too late."""

    def routes(self) -> list[Route]:
        return [
            replace(each, handler=_refuse) if each.pattern.startswith("/models") else each
            for each in super().routes()
        ]


class FalseRoundDriver(RoundDriver):
    def finalise(self, round_: RoundView, result: SignedResult) -> None:
        super().finalise(round_, replace(result, model_hash=b"\x13" * 32))


class PostsWrongModelHash(Server):
    """Ends rounds with a model hash of its own, under the members' signatures."""

    ROUND_DRIVER = FalseRoundDriver


class IdleRoundDriver(RoundDriver):
    def act(self, now: Moment, place: int) -> None:
        del now, place


class Idles(Server):
    """Opens and ends no round, so that others have to."""

    ROUND_DRIVER = IdleRoundDriver


SERVERS: Final = cheats_of(
    "servers",
    Server,
    {
        "wrong-model": ServesWrongModels,
        "late-model": WithholdsModels,
        "wrong-model-hash": PostsWrongModelHash,
        "idle": Idles,
    },
)


def _spoiled(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def spoil(request: Request) -> Response:
        body = bytearray(handler(request).body)
        body[0] ^= 1
        return Response.binary(bytes(body))

    return spoil


def _refuse(request: Request) -> Response:
    del request
    raise Refusal(503, "come back later")
