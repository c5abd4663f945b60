"""One member's daemon tampers with audits of proved steps in whole jobs, on a real chain."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from opfl_chain.jobs.localnet.daemon import LocalnetError
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import (
    ACQUITTED,
    LEFT_OUT,
    OUTSIDE,
    PASSED,
    UNDECIDED,
    JobOutcome,
)
from opfl_chain.jobs.localnet.plan import Plan

BAD: Final = "member-2"
TAMPERING: Final = ("flip", "reveal-others", "frame", "leak")
"""The cheats of members that tamper with what they send in such audits."""
_PLAN: Final = Plan(
    clients=(None, None, None, "amplify:10", "forge"),
    rounds=2,
    audit="proved",
    audit_rate=1.0,
    dataset="synthetic",
    score=False,
)
COUNTED: Final = ("runs", "wrong_verdicts", "aborts", "named", "misnamed")


def daemon_runs(cheat: str, progress: Callable[[str], None]) -> dict[str, Any]:
    """Play a job whose third member tampers, and count how its audits end."""
    plan = replace(_PLAN, members=(None, None, cheat))
    with (
        tempfile.TemporaryDirectory(prefix="opfl-tamper-") as folder,
        Localnet(plan, Path(folder), progress) as net,
    ):
        try:
            net.start()
            net.run()
        except LocalnetError as error:
            return {"cheat": cheat, "stuck": str(error)}
        return {"cheat": cheat, **counted(plan, JobOutcome.of(net))}


def counted(plan: Plan, outcome: JobOutcome) -> dict[str, Any]:
    """Count audits by how they ended, and faults by who paid for them."""
    total: Counter[str] = Counter()
    lost = 0
    for index, conduct in enumerate(plan.clients):
        name = f"client-{index}"
        right = (PASSED, ACQUITTED) if conduct is None else (OUTSIDE,)
        lost += outcome.lost_wei(name) if conduct is None else 0
        for number in range(outcome.rounds):
            if not outcome.is_audited(number, name):
                continue
            total["runs"] += 1
            verdict = outcome.verdict(number, name)
            if verdict in (UNDECIDED, LEFT_OUT, None):
                total["aborts"] += 1
            else:
                total["wrong_verdicts"] += verdict not in right
    for (_, member), faults in outcome.penalties().items():
        total["named" if member == BAD else "misnamed"] += len(faults)
    return {**{name: total[name] for name in COUNTED}, "honest_clients_lost_wei": lost}
