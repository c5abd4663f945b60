"""One member's daemon tampers with audits of proved steps in whole jobs, on a real chain."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from opfl_chain.jobs.localnet.daemon import LocalnetError
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import LEFT_OUT, PASSED, JobOutcome
from opfl_chain.jobs.localnet.plan import Plan

BAD: Final = "member-2"
HONEST: Final = ("member-0", "member-1")
TAMPERING: Final = ("flip", "reveal-others", "frame", "leak")
"""The cheats of members that tamper with what they send in such audits."""
_PLAN: Final = Plan(
    clients=(None, None, "amplify:10", "forge"),
    rounds=2,
    audit="proved",
    audit_rate=1.0,
    dataset="synthetic",
    score=False,
)


COUNTED: Final = ("runs", "wrong_verdicts", "aborts", "named", "pairs", "misnamed", "unnamed")


class _Disputes:
    """Collects what honest members' health says about disputes; a localnet calls it repeatedly."""

    def __init__(self, net: Localnet) -> None:
        self._net = net
        self.found: list[dict[str, Any]] = []

    def __call__(self) -> None:
        for name in HONEST:
            health = self._net.health(name) if self._net.daemons[name].started else None
            for dispute in (health or {}).get("disputes") or ():
                if dispute not in self.found:
                    self.found.append(dispute)


def daemon_runs(cheat: str, progress: Callable[[str], None]) -> dict[str, Any]:
    """Play a job whose third member tampers, and count how its audits end.

    Daemons name the member that is shown to lie, or two of whom one does: then a third party has
    to settle it, and the audit counts as `pairs` beside `named`.
    """
    plan = replace(_PLAN, members=(None, None, cheat))
    with (
        tempfile.TemporaryDirectory(prefix="opfl-tamper-") as folder,
        Localnet(plan, Path(folder), progress) as net,
    ):
        disputes = _Disputes(net)
        try:
            net.start(disputes)
            net.run(disputes)
        except LocalnetError as error:
            return {"cheat": cheat, "stuck": str(error), "disputes": disputes.found}
        bad = net.addresses[BAD]
        outcome = JobOutcome.of(net)
        shown = leak_events(Path(folder))
    counted = _counted(plan, outcome, disputes.found, str(bad))
    return {"cheat": cheat, **counted, **(_leaked(shown) if shown else {})}


def leak_events(folder: Path) -> list[dict[str, Any]]:
    """Return what the runs of `leak` showed, from the log of the tampering member."""
    lines = (line for log in folder.glob(f"{BAD}-*.log") for line in log.read_text().splitlines())
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return [event for event in events if event["event"] == "leak"]


def _leaked(shown: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Count guesses, and openings of one contribution.

    The first guess is blind. The second is right, or corrects what a cheat proved: uncompared, the
    verdict would be the one that the member wants.
    """
    opened: defaultdict[tuple[int, int], set[tuple[str, ...]]] = defaultdict(set)
    for each in shown:
        opened[each["round"], each["client"]].add(tuple(each["revealed"]))
    told = sum(each["accepted_uncompared"] == (each["run"] == 2) for each in shown)
    return {
        "guesses": len(shown),
        "uncompared_leaks": told,
        "opened_bits_per_contribution": max(map(len, opened.values())),
    }


def _counted(
    plan: Plan, outcome: JobOutcome, disputes: list[dict[str, Any]], bad: str
) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for number in range(outcome.rounds):
        for index, conduct in enumerate(plan.clients):
            name = f"client-{index}"
            if not outcome.is_audited(number, name) or name not in outcome.participants(number):
                continue
            total["runs"] += 1
            verdict = outcome.verdict(number, name)
            right = PASSED if conduct is None else "REPLAY_OUTSIDE"
            if verdict not in (LEFT_OUT, None):
                total["wrong_verdicts"] += verdict != right
                continue
            total["aborts"] += 1
            about = [each for each in disputes if each["round"] == number]
            own = outcome.client_index(name)
            about = [each for each in about if each.get("client", own) == own]
            total[_naming(about, bad)] += 1
    lost = sum(
        outcome.lost_wei(f"client-{index}")
        for index, conduct in enumerate(plan.clients)
        if conduct is None
    )
    return {**{name: total[name] for name in COUNTED}, "honest_clients_lost_wei": lost}


def _naming(disputes: list[dict[str, Any]], bad: str) -> str:
    """Return how daemons name the tampering member; it may be one of two, or it or the client."""
    suspected = [set(map(str, each["members"])) for each in disputes]
    if any(bad not in members for members in suspected):
        return "misnamed"
    of_members = [each for each in disputes if not str(each["reason"]).startswith("alone")]
    if any(len(each["members"]) == 1 for each in of_members):
        return "named"
    return "pairs" if suspected else "unnamed"
