"""`deterrence`: detection rates and profits of cheats in simulated jobs.

Audits are drawn as the protocol draws them, by seeds and addresses. An audited round is rejected
with the probability that `general-attacks` measured for the kind of cheat.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opfl_chain.paper.results import LabSettings
from opfl_chain.paper.strategies import VERSION_1, VERSION_2, AuditRules, Strategy, strategies
from opfl_chain.protocol.economics import BestResponse, Deterrence
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.randomness import audit_rate_of, audit_ticket
from opfl_chain.rules.registry import DEFAULT_RULE

Counts = NDArray[Any]

PAY = 1.2
"""The pay of an accepted contribution, in units of what it costs: it pays to take part."""
STRATEGY_RATES = (0.01, 0.05, 0.10)

RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.10)
ROUNDS, SKIPPED = 1000, 100
DEPOSITS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
CONFIDENCE = 1.96
OPFL = f"opfl-{DEFAULT_RULE.name}"


def deterrence(
    settings: LabSettings,
    general: Mapping[str, Any] | None,
    drift: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Simulate detection by audit rate, and profits by deposit at the paper's rates."""
    random = np.random.default_rng(settings.seed)
    chances, sources = rejection_chances(general, drift)
    jobs = settings.simulated_jobs
    tickets = tickets_of(jobs, settings.seed)
    drawn = {rate: audited_cheats(tickets, rate) for rate in RATES}
    rules = Deterrence(SKIPPED)
    rows = [_detection_row(rules, rate, audits, jobs) for rate, audits in drawn.items()]
    profits = [
        {
            "attack": attack,
            "rejected_when_audited": chance,
            "audit_rate": rate,
            "deposit": deposit,
            **_profit(drawn[rate], chance, deposit, random),
        }
        for attack, chance in chances.items()
        for rate in (0.01, 0.05, 0.10)
        for deposit in (*DEPOSITS, rules.required_deposit(rate))
    ]
    return {
        "jobs": jobs,
        "rounds": ROUNDS,
        "cheating_rounds": SKIPPED,
        "chances_from": sources,
        "rows": rows,
        "profits": profits,
        "pay": PAY,
        "strategies": strategy_rows(tickets),
    }


def rejection_chances(
    general: Mapping[str, Any] | None, drift: Mapping[str, Any] | None = None
) -> tuple[dict[str, float], str]:
    """Return each cheat's probability of rejection by an audit: 1 - ASR, the lowest of all runs."""
    if general is None:
        return {"any cheat that audits reject": 1.0}, "assumed"
    found: dict[str, float] = {}
    for run in general["runs"]:
        for each in run["attacks"]:
            chance = 1.0 - (each["asr"][OPFL] or 0.0)
            found[each["attack"]] = min(found.get(each["attack"], 1.0), chance)
    found["poison"] = 0.0  # replays agree with poisoned data
    if drift is None:
        return found, "general-attacks"
    (row,) = (row for row in drift["rows"] if row["verifier"] == OPFL)
    found["drift"] = 1.0 - row["accepted"] / row["rounds"]
    return found, "general-attacks and drift"


def tickets_of(jobs: int, seed: int) -> Counts:
    """Draw the audit tickets of each job's client in its cheating rounds.

    Beacons of different rounds are independent, so the choice of cheating rounds does not matter.
    """
    drawn = np.zeros((jobs, SKIPPED), np.uint64)
    for job in range(jobs):
        name = seed.to_bytes(8, "big") + job.to_bytes(8, "big")
        client = "0x" + keccak256(b"client", name)[:20].hex()
        for number in range(SKIPPED):
            beacon = keccak256(b"seed", name, number.to_bytes(8, "big"))
            drawn[job, number] = audit_ticket(beacon, client)
    return drawn


def audited_cheats(tickets: Counts, rate: float) -> Counts:
    """Count the audited cheating rounds of each job's client."""
    return np.asarray((tickets < np.uint64(audit_rate_of(rate))).sum(1))


def _detection_row(rules: Deterrence, rate: float, audits: Counts, jobs: int) -> dict[str, Any]:
    measured = float((audits > 0).mean())
    expected = rules.detection_probability(rate)
    spread = CONFIDENCE * math.sqrt(max(expected * (1 - expected), 1 / jobs) / jobs)
    deters = expected > rules.false_rejection
    return {
        "audit_rate": rate,
        "detected": measured,
        "formula": expected,
        "within_95_percent": abs(measured - expected) <= spread,
        "required_deposit": rules.required_deposit(rate) if deters else None,
    }


def _profit(
    audits: Counts,
    chance: float,
    deposit: float,
    random: np.random.Generator,
) -> dict[str, float]:
    """Return the mean profit of cheating: one unit of computation, less the deposit if lost."""
    caught = float((random.binomial(audits, chance) > 0).mean())
    return {"detected": caught, "profit": 1.0 - caught * deposit}


def strategy_rows(tickets: Counts, rules: AuditRules = VERSION_2) -> list[dict[str, Any]]:
    """Return what each strategy gains over honesty at the deposit that `opfl stake` recommends."""
    rows = []
    for rate in STRATEGY_RATES:
        response = BestResponse(pay=PAY)
        deposit = response.required_deposit(rate)
        audited = tickets < np.uint64(audit_rate_of(rate))
        for strategy in strategies(SKIPPED):
            gains = _gains(strategy, audited, deposit, rules)
            expected = expected_gain(strategy, rate, deposit, rules)
            spread = CONFIDENCE * float(gains.std()) / math.sqrt(len(gains))
            rows.append(
                {
                    "strategy": strategy.name,
                    "audit_rate": rate,
                    "deposit": deposit,
                    "gain": float(gains.mean()),
                    "expected_gain": expected,
                    "within_95_percent": abs(float(gains.mean()) - expected) <= spread + 1e-9,
                    "expected_gain_in_version_1": expected_gain(strategy, rate, deposit, VERSION_1),
                }
            )
    return rows


def _gains(strategy: Strategy, audited: Counts, deposit: float, rules: AuditRules) -> Counts:
    """Return what the client of each job has more than an honest one, at its end.

    Whoever loses all of its deposit is out of the job, and earns nothing in later rounds.
    """
    found = np.zeros(len(audited))
    inside = np.ones(len(audited), bool)
    price = strategy.price(rules)
    for t in strategy.cheats_in:
        found += inside  # the saved computation
        caught = inside & audited[:, t]
        later = SKIPPED - 1 - t if price == 1.0 else 0
        found -= caught * (PAY + price * deposit + later * (PAY - 1.0))
        if price == 1.0:
            inside &= ~caught
    return found


def expected_gain(strategy: Strategy, rate: float, deposit: float, rules: AuditRules) -> float:
    """Return the expectation of the same."""
    total, inside = 0.0, 1.0
    price = strategy.price(rules)
    for t in strategy.cheats_in:
        later = (SKIPPED - 1 - t) * (PAY - 1.0) if price == 1.0 else 0.0
        total += inside * (1.0 - rate * (PAY + price * deposit + later))
        inside *= 1.0 - rate if price == 1.0 else 1.0
    return total
