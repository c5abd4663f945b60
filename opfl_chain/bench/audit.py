"""Benchmark of an audit, naive and of all kinds: stages alternate in one run of three processes.

The processes communicate over loopback, or with a given round-trip time.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from opfl_chain.bench.audit_stages import BATCH, Cost, Stages, batched, compile_stages
from opfl_chain.bench.network import three_parties
from opfl_chain.bench.uploads import Members
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
KINDS: Final = {
    "plain": ("replay", "boundary"),
    "guided": ("guided_replay", "guided_boundary"),
    "proved": ("proved_answers",),
}
"""The members' stages of each kind of audit, beside the check of the delivery."""
_MEGABYTE = 1e6
_TOTALS = {
    "whole audit, scheme `shares`": "ours_seconds",
    "whole audit, scheme `mpc`": "ours_mpc_seconds",
    "whole guided audit, scheme `shares`": "guided_seconds",
}


@dataclass(frozen=True)
class AuditBench:
    """Median costs over the repetitions."""

    model: str
    batch_size: int
    repeats: int
    stages: dict[str, Cost]
    rtt_ms: float = 0.0
    """Round-trip time added between members; 0 on loopback."""
    measured_rtt_ms: float | None = None
    load_before: float = 0.0
    """The load of the machine before the measurement."""

    def total(self, *stages: str) -> float:
        return sum(self.stages[stage].seconds for stage in stages)

    @property
    def report(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "batch_size": self.batch_size,
            "repeats": self.repeats,
            "rtt_ms": self.rtt_ms,
            **({"measured_rtt_ms": self.measured_rtt_ms} if self.rtt_ms else {}),
            "load_before": self.load_before,
            "kinds": {kind: self._kind(kind) for kind in KINDS if f"{kind}_client" in self.stages},
            **self._totals,
            **(self._comparison if "naive_replay" in self.stages else {}),
            "gate1_shares_seconds": self.stages["gate1_shares"].seconds,
            "batch_seconds_per_audit": {
                name.removeprefix(BATCH): cost.seconds / int(name.removeprefix(BATCH))
                for name, cost in self.stages.items()
                if name.startswith(BATCH)
            },
            "stages": {name: asdict(cost) for name, cost in self.stages.items()},
        }

    @property
    def _totals(self) -> dict[str, float]:
        found = {}
        if "replay" in self.stages:
            found["ours_seconds"] = self.total("replay", "boundary", "gate1_shares")
            found["ours_mpc_seconds"] = self.total("replay", "boundary", "gate1_mpc")
            found["gate1_mpc_seconds"] = self.stages["gate1_mpc"].seconds
        if "guided_replay" in self.stages:
            stages = ("guided_replay", "guided_boundary", "gate1_shares")
            found["guided_seconds"] = self.total(*stages)
        return found

    def _kind(self, kind: str) -> dict[str, Any]:
        """Return all costs of one audit of a kind, from the trained step to the verdict."""
        client, upload = self.stages[f"{kind}_client"], self.stages[f"{kind}_upload"]
        members = [self.stages[name] for name in ("gate1_shares", *KINDS[kind])]
        return {
            "seconds": client.seconds + upload.seconds + sum(each.seconds for each in members),
            "cpu_seconds_members": sum(each.cpu_seconds for each in members),
            "cpu_seconds_client": client.cpu_seconds,
            "megabytes_members": sum(each.sent_bytes for each in members) / _MEGABYTE,
            "messages": sum(each.sent_messages for each in members),
            "rounds": sum(each.rounds for each in members),
            "megabytes_client": client.sent_bytes / _MEGABYTE,
            "batches": self._batches(kind),
        }

    def _batches(self, kind: str) -> dict[str, Any]:
        """Return what members spend on several audits together, by their number."""
        start = batched(0, kind).removesuffix("0")
        found = {
            name.removeprefix(start): cost
            for name, cost in self.stages.items()
            if name.startswith(start)
        }
        return {
            size: {
                "seconds_per_audit": cost.seconds / int(size),
                "cpu_seconds_members_per_audit": cost.cpu_seconds / int(size),
                "megabytes_members": cost.sent_bytes / _MEGABYTE,
                "messages": cost.sent_messages,
            }
            for size, cost in found.items()
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
    kinds: Collection[str] = tuple(KINDS),
    batch_size: int = 1,
) -> AuditBench:
    """Start three processes, compile, and measure all stages in turn.

    Raises NamespacesUnavailable if the machine cannot simulate a round-trip time.
    """
    step, load = Step(model, batch_size=batch_size), os.getloadavg()[0]
    with_naive = with_naive and {"plain", "guided"} <= set(kinds)  # it is compared with both
    with three_parties(rtt_ms) as parties:
        progress("compiling")
        compiled = compile_stages(step, batches, kinds, with_naive)
        samples: dict[str, list[Cost]] = {}
        seconds = SESSION_SECONDS + SECONDS_PER_MS * rtt_ms
        with (
            parties.local.session("bench", seconds=seconds) as committee,
            Members(durable=True, places=parties.places) as members,
        ):
            stages = Stages(committee, step, compiled, batches, kinds, members)
            for repeat in range(repeats + 1):  # the first is a warm-up and not counted
                for name, measure in stages.all.items():
                    progress(f"{name} ({repeat} of {repeats})")
                    cost = measure()
                    if repeat:
                        samples.setdefault(name, []).append(cost)
    medians = {name: _median(costs) for name, costs in samples.items()}
    return AuditBench(
        model.name, batch_size, repeats, medians, rtt_ms, parties.measured_rtt_ms, load
    )


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        round(statistics.median(cost.sent_bytes for cost in costs)),
        round(statistics.median(cost.sent_messages for cost in costs)),
        max(cost.peak_memory_bytes for cost in costs),
        round(statistics.median(cost.rounds for cost in costs)),
        statistics.median(cost.cpu_seconds for cost in costs),
    )


KIND_COLUMNS: Final = (
    "kind",
    ">seconds",
    ">CPU of members, s",
    ">CPU of client, s",
    ">MB among members",
    ">messages",
    ">rounds",
    ">MB from client",
)


def kind_rows(report: dict[str, Any]) -> list[list[str]]:
    """Return the cells of each kind of audit, and of several audits of a round."""
    rows = []
    for kind, found in report["kinds"].items():
        rows.append(
            [
                kind,
                f"{found['seconds']:.3f}",
                f"{found['cpu_seconds_members']:.3f}",
                f"{found['cpu_seconds_client']:.3f}",
                f"{found['megabytes_members']:,.4g}",
                f"{found['messages']:,}",
                f"{found['rounds']:,}",
                f"{found['megabytes_client']:.2f}",
            ]
        )
    return rows


def kinds_markdown(report: dict[str, Any]) -> str:
    """Format what an audit of each kind costs, and what several audits of a round cost."""
    batches = [
        [
            kind,
            size,
            f"{of_size['seconds_per_audit']:.3f}",
            f"{of_size['cpu_seconds_members_per_audit']:.3f}",
            f"{of_size['megabytes_members']:,.4g}",
            f"{of_size['messages']:,}",
        ]
        for kind, found in report["kinds"].items()
        for size, of_size in found["batches"].items()
    ]
    parts = [markdown_table(list(KIND_COLUMNS), kind_rows(report))]
    if batches:
        columns = ["kind", ">audits", ">seconds each", ">CPU of members each, s"]
        parts.append(markdown_table([*columns, ">MB among members", ">messages"], batches))
    ratios = kind_ratios(report)
    if ratios:
        parts.append(
            f"Against guided, a proved audit sends {ratios['bytes']:,.0f} times fewer bytes and"
            f" {ratios['messages']:,.0f} times fewer messages among members, and is"
            f" {ratios['seconds']:.1f} times as fast. Load of the machine before:"
            f" {report['load_before']:.1f}."
        )
    return "\n\n".join(parts)


def kind_ratios(report: dict[str, Any]) -> dict[str, float]:
    """Return how many times as much a guided audit costs as a proved one."""
    kinds = report["kinds"]
    if not {"guided", "proved"} <= kinds.keys():
        return {}
    fields = {"bytes": "megabytes_members", "messages": "messages", "seconds": "seconds"}
    return {name: kinds["guided"][field] / kinds["proved"][field] for name, field in fields.items()}


def audit_markdown(report: dict[str, Any]) -> str:
    """Format seconds, megabytes and messages of each stage, with naive figures if measured."""
    with_naive = "naive_seconds" in report
    rows = [
        _row(stage, report["stages"][ours], report["stages"][naive] if with_naive else None)
        for stage, (naive, ours) in _PAIRS.items()
        if ours in report["stages"]
    ]
    for name, field in _TOTALS.items():
        if field not in report:
            continue
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
    if not costs:
        return f"A process needs at most {memory} MB."
    return f"Each of several audits of a round: {costs}. A process needs at most {memory} MB."
