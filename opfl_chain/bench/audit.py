"""Benchmark of an audit, naive and ours: stages alternate in one run among three processes.

The processes communicate over loopback, or with a given round-trip time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opfl_chain.bench.audit_stages import BATCH, Cost, Stages, compile_stages
from opfl_chain.bench.network import three_parties
from opfl_chain.lab.sample_step import Step
from opfl_chain.learning.model import Model
from opfl_chain.render.text import markdown_table, megabytes, seconds_in_words

SESSION_SECONDS = 3600.0
SECONDS_PER_MS = 60.0
"""Additional session time per millisecond of round-trip time."""
Progress = Callable[[str], None]
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


@dataclass(frozen=True)
class AuditBench:
    """Median costs over the repetitions."""

    model: str
    repeats: int
    stages: dict[str, Cost]
    rtt_ms: float = 0.0
    """Round-trip time added between members; 0 on loopback."""
    measured_rtt_ms: float | None = None

    def total(self, *stages: str) -> float:
        return sum(self.stages[stage].seconds for stage in stages)

    @property
    def report(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "repeats": self.repeats,
            "rtt_ms": self.rtt_ms,
            **({"measured_rtt_ms": self.measured_rtt_ms} if self.rtt_ms else {}),
            "ours_seconds": self.total("replay", "boundary", "gate1_shares"),
            "ours_mpc_seconds": self.total("replay", "boundary", "gate1_mpc"),
            "guided_seconds": self.total("guided_replay", "guided_boundary", "gate1_shares"),
            **(self._comparison if "naive_replay" in self.stages else {}),
            "gate1_mpc_seconds": self.stages["gate1_mpc"].seconds,
            "gate1_shares_seconds": self.stages["gate1_shares"].seconds,
            "batch_seconds_per_audit": {
                name.removeprefix(BATCH): cost.seconds / int(name.removeprefix(BATCH))
                for name, cost in self.stages.items()
                if name.startswith(BATCH)
            },
            "stages": {name: asdict(cost) for name, cost in self.stages.items()},
        }

    @property
    def _comparison(self) -> dict[str, float]:
        naive_seconds = self.total("naive_replay", "naive_boundary", "naive_commitment")
        return {
            "naive_seconds": naive_seconds,
            "speedup": naive_seconds / self.total("replay", "boundary", "gate1_shares"),
            "speedup_mpc": naive_seconds / self.total("replay", "boundary", "gate1_mpc"),
            "speedup_guided": naive_seconds
            / self.total("guided_replay", "guided_boundary", "gate1_shares"),
            "replay_speedup": self._ratio("naive_replay", "replay", "seconds"),
            "replay_bytes_ratio": self._ratio("naive_replay", "replay", "sent_bytes"),
            "replay_messages_ratio": self._ratio("naive_replay", "replay", "sent_messages"),
            "boundary_speedup": self._ratio("naive_boundary", "boundary", "seconds"),
            "gate1_shares_of_naive_replay": self._ratio("gate1_shares", "naive_replay", "seconds"),
        }

    def _ratio(self, above: str, below: str, field: str) -> float:
        return float(getattr(self.stages[above], field) / getattr(self.stages[below], field))


def bench_audit(
    model: Model,
    repeats: int,
    batches: Sequence[int],
    with_naive: bool,
    rtt_ms: float,
    progress: Progress,
) -> AuditBench:
    """Start three processes, compile, and measure all stages in turn.

    Raises NamespacesUnavailable if the machine cannot simulate a round-trip time.
    """
    step = Step(model)
    with three_parties(rtt_ms) as (local, measured_rtt_ms):
        progress("compiling")
        compiled = compile_stages(step, batches, with_naive)
        samples: dict[str, list[Cost]] = {}
        seconds = SESSION_SECONDS + SECONDS_PER_MS * rtt_ms
        with local.session("bench", seconds=seconds) as committee:
            stages = Stages(committee, step, compiled, batches)
            for repeat in range(repeats + 1):  # the first is a warm-up and not counted
                for name, measure in stages.all.items():
                    progress(f"{name} ({repeat} of {repeats})")
                    cost = measure()
                    if repeat:
                        samples.setdefault(name, []).append(cost)
    medians = {name: _median(costs) for name, costs in samples.items()}
    return AuditBench(model.name, repeats, medians, rtt_ms, measured_rtt_ms)


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        round(statistics.median(cost.sent_bytes for cost in costs)),
        round(statistics.median(cost.sent_messages for cost in costs)),
        max(cost.peak_memory_bytes for cost in costs),
    )


def audit_markdown(report: dict[str, Any]) -> str:
    """Format seconds, megabytes and messages of each stage, with naive figures if measured."""
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
    size, messages = megabytes(ours["sent_bytes"]), f"{ours['sent_messages']:,}"
    if naive is None:
        return [stage, f"{ours['seconds']:.3f}", size, messages]
    return [
        stage,
        f"{naive['seconds']:.2f}",
        f"{ours['seconds']:.3f}",
        _ratio(naive["seconds"], ours["seconds"]),
        size,
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
        f"{seconds_in_words(seconds, 2)} in a batch of {size}"
        for size, seconds in report["batch_seconds_per_audit"].items()
    )
    most = max(cost["peak_memory_bytes"] for cost in report["stages"].values())
    memory = megabytes(most, 0)
    return f"Each of several audits of a round: {costs}. A process needs at most {memory} MB."
