"""What a bench of an audit found, as a table for a page."""

from __future__ import annotations

from typing import Any

from opfl_chain.benchmarks.page import markdown_table

_PAIRS = {
    "replay": ("naive_replay", "replay"),
    "boundary": ("naive_boundary", "boundary"),
    "commitment, scheme `mpc`": ("naive_commitment", "gate1_mpc"),
    "commitment, scheme `shares`": ("naive_commitment", "gate1_shares"),
    "guided replay": ("naive_replay", "guided_replay"),
    "guided boundary and advice": ("naive_boundary", "guided_boundary"),
}
_TOTALS = {
    "whole audit, scheme `shares`": "ours_seconds",
    "whole audit, scheme `mpc`": "ours_mpc_seconds",
    "whole guided audit, scheme `shares`": "guided_seconds",
}


def audit_markdown(report: dict[str, Any]) -> str:
    """Seconds, megabytes and messages of each stage, ours and naive where that was measured."""
    with_naive = "naive_seconds" in report
    rows = [
        _row(stage, report["stages"][ours], report["stages"][naive] if with_naive else None)
        for stage, (naive, ours) in _PAIRS.items()
    ]
    for name, field in _TOTALS.items():
        naive = report["naive_seconds"] if with_naive else None
        rows.append(_total_row(name, report[field], naive))
    columns = ["stage", ">seconds", ">MB", ">messages"]
    if with_naive:
        columns = ["stage", ">naive, s", ">ours, s", ">ratio", ">MB", ">ratio", ">messages"]
        columns += [">ratio"]
    return markdown_table(columns, rows) + "\n\n" + _batches(report)


def _row(stage: str, ours: dict[str, Any], naive: dict[str, Any] | None) -> list[str]:
    megabytes, messages = f"{ours['sent_bytes'] / 1e6:.1f}", f"{ours['sent_messages']:,}"
    if naive is None:
        return [stage, f"{ours['seconds']:.3f}", megabytes, messages]
    return [
        stage,
        f"{naive['seconds']:.2f}",
        f"{ours['seconds']:.3f}",
        _ratio(naive["seconds"], ours["seconds"]),
        megabytes,
        _ratio(naive["sent_bytes"], ours["sent_bytes"]),
        messages,
        _ratio(naive["sent_messages"], ours["sent_messages"]),
    ]


def _total_row(name: str, ours: float, naive: float | None) -> list[str]:
    if naive is None:
        return [name, f"{ours:.2f}", "", ""]
    return [name, f"{naive:.2f}", f"{ours:.2f}", _ratio(naive, ours), "", "", "", ""]


def _ratio(naive: float, ours: float) -> str:
    return f"{naive / ours:.1f}" if ours else ""


def _batches(report: dict[str, Any]) -> str:
    costs = ", ".join(
        f"{seconds:.2f} s in a batch of {size}"
        for size, seconds in report["batch_seconds_per_audit"].items()
    )
    memory = max(cost["peak_memory_bytes"] for cost in report["stages"].values()) / 1e6
    return f"Each of several audits of a round: {costs}. A process needs at most {memory:,.0f} MB."
