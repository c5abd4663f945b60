"""`cost`: the total cost of a job with five clients and a thousand rounds.

As in the paper, the work of all gradients is added up, as if one committee did it in sequence.
Members work in parallel, and so do clients: a second that all of them work counts once. Waiting for
blocks does not count; the node's own work on the transactions does. Clients' own work beside their
training (shares, advice, and a proof of every step, audited or not) is given beside the totals.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from opfl_chain.bench.audit import bench_audit
from opfl_chain.bench.round_costs import RoundCosts, round_costs
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.paper.results import LabSettings
from opfl_chain.protocol.economics import Deterrence, trade_off

CLIENTS, ROUNDS = 5, 1000
RATES = (0.10, 0.05, 0.01)
MODEL = LENET_61706
FULL = ("naive_full_mpc", "full_mpc")
"""Baselines that OPFL is compared with: the first two rows."""
AUDITS = {
    "guided": ("guided_replay", "guided_boundary"),
    "proved": ("proved_answers",),
}
"""The members' stages of an audit, by kind."""

_SUFFIXES = {"proved": ", proved"}
"""Suffixes of the names of methods that the paper does not have, by kind of audits."""


def cost(settings: LabSettings, progress: Callable[[str], None]) -> dict[str, Any]:
    load_before = os.getloadavg()[0]
    audit = bench_audit(MODEL, settings.audit_repeats, [1], True, 0.0, progress)
    form = default_policy(MODEL).input_format
    beside = round_costs(
        MODEL.layout.size, form.words, CLIENTS, max(settings.audit_repeats, 3), progress
    )
    stages = {name: each.seconds for name, each in audit.stages.items()}
    return {
        "model": MODEL.name,
        "clients": CLIENTS,
        "rounds": ROUNDS,
        "repeats": settings.audit_repeats,
        "cores": os.cpu_count(),
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
        "audit_stages_seconds": stages,
        "round": beside.report,
        **cost_rows(stages, beside),
    }


def cost_rows(stages: dict[str, float], beside: RoundCosts) -> dict[str, Any]:
    """Compute the totals of a job from the seconds of its stages."""
    gradients = CLIENTS * ROUNDS
    aggregation = ROUNDS * beside.aggregation_seconds
    inputs = gradients * beside.input_transfer_seconds
    rows = [
        _row(
            "full MPC, as any JAX user would write it",
            {
                "computation": gradients * stages["naive_replay"],
                "share_transfer": inputs,
                "aggregation": aggregation,
            },
        ),
        _row(
            "full MPC, with our operations",
            {
                "computation": gradients * stages["replay"],
                "share_transfer": inputs,
                "aggregation": aggregation,
            },
        ),
    ]
    deposits = trade_off(RATES, Deterrence())
    for kind in AUDITS:
        for rate, deposit in zip((1.0, *RATES), (None, *deposits), strict=True):
            rows.append(
                {
                    **_audited_row(kind, rate, stages, beside),
                    "gas": ROUNDS * beside.gas,
                    "deposit": deposit.deposit if deposit else None,
                    "deposit_ratio": deposit.deposit_ratio if deposit else None,
                }
            )
    for row in rows:
        # Chains are paid in gas and run their own nodes: give ratios with and without the node.
        ways = {"": row["seconds"], "_without_chain_node": row["seconds"] - _chain(row)}
        row["seconds_without_chain_node"] = ways["_without_chain_node"]
        if "audits" in row["parts"]:
            row["seconds_as_the_paper_counts"] = _as_the_paper_counts(row)
        if "client_seconds" in row:
            ways["_with_clients"] = ways["_without_chain_node"] + row["client_seconds"]
        for full, name in zip(rows, FULL, strict=False):
            for way, seconds in ways.items():
                row[f"times_cheaper_than_{name}{way}"] = full["seconds"] / seconds
            if "audits" in row["parts"]:
                ratio = _as_the_paper_counts(full) / row["seconds_as_the_paper_counts"]
                row[f"times_cheaper_than_{name}_as_the_paper_counts"] = ratio
    return {"rows": rows}


def _audited_row(
    kind: str, rate: float, stages: dict[str, float], beside: RoundCosts
) -> dict[str, Any]:
    """Return the costs of OPFL with this kind of audits at this rate."""
    gradients = CLIENTS * ROUNDS
    extra = stages[f"{kind}_upload"] - stages["plain_upload"]
    audited_transfer = beside.input_transfer_seconds + max(0.0, extra)
    parts = {
        "audits": rate * gradients * sum(stages[name] for name in AUDITS[kind]),
        "commitment_gate": gradients * beside.gate_seconds,
        "share_transfer": gradients * (beside.transfer_seconds + rate * audited_transfer),
        "aggregation": ROUNDS * beside.aggregation_seconds,
        "chain": ROUNDS * beside.chain_node_seconds,
    }
    return {
        **_row(f"OPFL, p = {rate:g}{_SUFFIXES.get(kind, '')}", parts),
        "kind": kind,
        "audit_rate": rate,
        "client_seconds": ROUNDS * stages[f"{kind}_client"],
    }


def _row(method: str, parts: dict[str, float]) -> dict[str, Any]:
    return {"method": method, "seconds": sum(parts.values()), "parts": parts}


def _chain(row: dict[str, Any]) -> float:
    seconds: float = row["parts"].get("chain", 0.0)
    return seconds


def _as_the_paper_counts(row: dict[str, Any]) -> float:
    """Return the seconds of audits (or of full MPC) and aggregation only."""
    parts = row["parts"]
    seconds: float = parts.get("audits", parts.get("computation")) + parts["aggregation"]
    return seconds
