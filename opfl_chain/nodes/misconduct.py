"""How members and servers break the protocol, for demonstrations and tests: each by a name.

What a client may do is in `opfl_chain.attacks` and `misdelivery`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from opfl_chain.nodes.chain_view import RoundView
from opfl_chain.nodes.errors import NodeError
from opfl_chain.nodes.evidence import SignedResult
from opfl_chain.nodes.member import Member
from opfl_chain.nodes.node import Moment
from opfl_chain.nodes.pushing import Pushing
from opfl_chain.nodes.server import Server
from opfl_chain.nodes.settings import MemberSettings, ServerSettings
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.transport.messages import Refusal, Request, Response
from opfl_chain.transport.routes import Route

N = TypeVar("N", Member, Server)


class WithholdsBeacon(Member):
    """Signs nothing, so that everybody is audited."""

    def sign_beacon(self, round_: RoundView, now: Moment) -> None:
        del round_, now


class RefusesDeliveries(Member):
    """Answers no client, and then says that they delivered nothing."""

    def routes(self) -> list[Route]:
        return [
            Route(each.method, each.pattern, _refuse, each.max_body_bytes)
            if "deliveries" in each.pattern
            else each
            for each in super().routes()
        ]


class SkipsAudits(Member):
    """Never comes to an audit, and attests nothing."""

    def judge(self, round_: RoundView, now: Moment) -> None:
        del round_, now


class WithholdsVerdict(Member):
    """Takes part in audits and attests nothing."""

    def attest(self, round_: RoundView, verdict: Verdict) -> None:
        del round_, verdict


class Lies(Member):
    """Attests that everybody passed, whatever was found; if that is true, that nobody did."""

    def attest(self, round_: RoundView, verdict: Verdict) -> None:
        everybody = {claim.client for claim in self.claims.of(round_).values()}
        passed = set() if set(verdict.passed) == everybody else everybody
        super().attest(round_, Verdict.of(passed, {}))


class Accuses(Member):
    """Attests that those who passed failed their replay."""

    def attest(self, round_: RoundView, verdict: Verdict) -> None:
        faults = dict.fromkeys(verdict.passed, FaultReason.REPLAY_OUTSIDE)
        super().attest(round_, Verdict.of(set(), faults))


class ServesWrongModels(Server):
    """Sends everyone models with one number changed."""

    def routes(self) -> list[Route]:
        return [
            Route(each.method, each.pattern, _spoiled(each.handler), each.max_body_bytes)
            if each.pattern.startswith("/models")
            else each
            for each in super().routes()
        ]


class PostsWrongModelHash(Server):
    """Ends rounds with a model hash of its own, under the members' signatures."""

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self.pushing = _PushingWrongHashes(self)


class _PushingWrongHashes(Pushing):
    def finalise(self, round_: RoundView, result: SignedResult) -> None:
        super().finalise(round_, replace(result, model_hash=b"\x13" * 32))


MEMBERS: dict[str, type[Member]] = {
    "withhold-beacon": WithholdsBeacon,
    "refuse-deliveries": RefusesDeliveries,
    "skip-audits": SkipsAudits,
    "withhold-verdict": WithholdsVerdict,
    "lie": Lies,
    "accuse": Accuses,
}
SERVERS: dict[str, type[Server]] = {
    "wrong-model": ServesWrongModels,
    "wrong-model-hash": PostsWrongModelHash,
}


def member_of(settings: MemberSettings) -> Member:
    return _chosen(settings.cheat, MEMBERS, Member)(settings)


def server_of(settings: ServerSettings) -> Server:
    return _chosen(settings.cheat, SERVERS, Server)(settings)


def _chosen(name: str | None, known: Mapping[str, type[N]], honest: type[N]) -> type[N]:
    if name is not None and name not in known:
        raise NodeError(f"cheat is {name!r}, known are {', '.join(known)}")
    return honest if name is None else known[name]


def _refuse(request: Request) -> Response:
    del request
    raise Refusal(503, "come back later")


def _spoiled(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def spoil(request: Request) -> Response:
        body = bytearray(handler(request).body)
        body[0] ^= 1
        return Response.binary(bytes(body))

    return spoil
