"""An audit done naively and ours, stage by stage, alternating in one run among three processes.

They are on loopback, or as far apart as a round-trip time says.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opfl_chain.benchmarks.audit_stages import BATCH, Stages, compile_stages
from opfl_chain.benchmarks.counted import Cost
from opfl_chain.benchmarks.step import (
    Step,
)
from opfl_chain.benchmarks.wan import three_parties
from opfl_chain.models.model import Model

SESSION_SECONDS = 3600.0
SECONDS_PER_MS = 60.0
"""More time for a session, for each millisecond of a round trip."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class AuditBench:
    """Medians over the repetitions."""

    model: str
    repeats: int
    stages: dict[str, Cost]
    rtt_ms: float = 0.0
    """Added between each two members; 0 on loopback."""
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

    Raises NamespacesUnavailable where there can be no round-trip time.
    """
    step = Step(model)
    with three_parties(rtt_ms) as (local, measured_rtt_ms):
        progress("compiling")
        compiled = compile_stages(step, batches, with_naive)
        samples: dict[str, list[Cost]] = {}
        seconds = SESSION_SECONDS + SECONDS_PER_MS * rtt_ms
        with local.session("bench", seconds=seconds) as committee:
            stages = Stages(committee, step, compiled, batches)
            for repeat in range(repeats + 1):  # the first warms up and does not count
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
