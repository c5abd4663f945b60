"""Members that break the protocol, by name."""

from __future__ import annotations

from typing import Final

from opfl_chain.adversaries.clients import cheats_of
from opfl_chain.protocol.verdict import FaultReason, Verdict
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.node import Moment
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.routes import Refusal, Request, Response, Route


class WithholdsBeacon(Member):
    """Signs nothing, so that everybody is audited."""

    def sign_beacon(self, round_: RoundView, now: Moment) -> None:
        del round_, now


class RefusesDeliveries(Member):
    """Refuses all deliveries, then claims that clients delivered nothing."""

    def routes(self) -> list[Route]:
        return [
            Route(each.method, each.pattern, _refuse, each.max_body_bytes)
            if "deliveries" in each.pattern
            else each
            for each in super().routes()
        ]


class SkipsAudits(Member):
    """Never joins an audit, and attests nothing."""

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


MEMBERS: Final = cheats_of(
    "members",
    Member,
    {
        "withhold-beacon": WithholdsBeacon,
        "refuse-deliveries": RefusesDeliveries,
        "skip-audits": SkipsAudits,
        "withhold-verdict": WithholdsVerdict,
        "lie": Lies,
        "accuse": Accuses,
    },
)


def _refuse(request: Request) -> Response:
    del request
    raise Refusal(503, "come back later")
