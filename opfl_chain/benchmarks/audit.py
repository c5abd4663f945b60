"""An audit done naively and ours, stage by stage, alternating in one run among three processes.

They are on loopback, or as far apart as a round-trip time says.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from opfl_chain.benchmarks import naive
from opfl_chain.benchmarks.step import (
    FRACTION_BITS,
    LARGEST_LIFT,
    LOSS_SCALE,
    GuidedStep,
    Step,
    held,
    packages_of,
    shared,
    tree_of,
)
from opfl_chain.benchmarks.wan import three_parties
from opfl_chain.models.model import Model
from opfl_chain.mpc.boolean import Transport, Words
from opfl_chain.mpc.committee import Committee
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.executable_cache import ExecutableCache
from opfl_chain.mpc.gates import (
    Contribution,
    advice_format_of,
    decide,
    decide_openings,
    evidence_of,
    replay_inputs,
)
from opfl_chain.mpc.guided_replay import guided_replay_program
from opfl_chain.mpc.input_check import InputRules
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.replay import replay_program
from opfl_chain.mpc.replay_names import EXAMPLES, GRADIENT, TARGETS
from opfl_chain.mpc.session import Session
from opfl_chain.mpc.shares import Share, arithmetic_share
from opfl_chain.mpc.statistics import RunStatistics
from opfl_chain.protocol.gradient import Scheme, Subject
from opfl_chain.protocol.ring_shares import SharePackage, verify_package

OURS = MpcOptions(FRACTION_BITS, compiler={"disable_deallocation_insertion": True})
NAIVE = MpcOptions(FRACTION_BITS)
SESSION_SECONDS = 3600.0
SECONDS_PER_MS = 60.0
"""More time for a session, for each millisecond of a round trip."""
_BATCH = "batch_of_"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Cost:
    """What one stage took: the slowest member's seconds, and what all members sent."""

    seconds: float
    sent_bytes: int = 0
    sent_messages: int = 0
    peak_memory_bytes: int = 0


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
                name.removeprefix(_BATCH): cost.seconds / int(name.removeprefix(_BATCH))
                for name, cost in self.stages.items()
                if name.startswith(_BATCH)
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


class CountingTransport:
    """Counts what a procedure sends."""

    def __init__(self, transport: Transport) -> None:
        self.rank = transport.rank
        self._transport = transport
        self.sent_bytes = 0
        self.sent_messages = 0

    def send(self, rank: int, data: bytes) -> None:
        self.sent_bytes += len(data)
        self.sent_messages += 1
        self._transport.send(rank, data)

    def receive(self, rank: int) -> bytes:
        return self._transport.receive(rank)

    def invalid(self, rank: int, reason: str) -> Exception:
        return self._transport.invalid(rank, reason)


def counted_decide(transport: Transport, **arguments: Any) -> list[Any]:
    """A procedure: `decide`, and what it sent."""
    counting = CountingTransport(transport)
    return [all(decide(counting, **arguments)), counting.sent_bytes, counting.sent_messages]


def counted_opening(transport: Transport, **arguments: Any) -> list[Any]:
    """A procedure: `decide_openings`, and what it sent."""
    counting = CountingTransport(transport)
    return [
        all(decide_openings(counting, **arguments)),
        counting.sent_bytes,
        counting.sent_messages,
    ]


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


def compile_stages(step: Step, batches: Sequence[int], with_naive: bool) -> dict[str, Executable]:
    """What SPU runs, by stage."""
    model, cache = step.model, ExecutableCache()
    compiled = {
        _batched(size): cache.compile(replay_program(model, 1, float(LOSS_SCALE), size), OURS)
        for size in {1, *batches}
    }
    compiled["replay"] = compiled[_batched(1)]
    guided = guided_replay_program(model, 1, float(LOSS_SCALE), LARGEST_LIFT)
    compiled["guided_replay"] = cache.compile(guided, OURS)
    if with_naive:
        programs = {
            "naive_replay": naive.replay_program(model, 1),
            "naive_boundary": naive.boundary_program(step.boundary),
            "naive_commitment": naive.commitment_program(model.layout.size),
        }
        compiled |= {name: cache.compile(program, NAIVE) for name, program in programs.items()}
    return compiled


class Stages:
    """Each stage as a function that runs it once and returns its cost."""

    def __init__(
        self,
        committee: Committee,
        step: Step,
        compiled: dict[str, Executable],
        batches: Sequence[int],
    ) -> None:
        self._committee = committee
        self._step = step
        self._compiled = compiled
        self._gradient = shared(step.gradient)
        self._replayed = shared(step.gradient)
        self._input = shared(step.training_input)
        self._tree_commitment, self._tree = tree_of(step.gradient)
        self._commitment, self._packages = packages_of(step.gradient)
        self._guided = GuidedStep(step.model, step.seed)
        self._guided_parts = [
            shared(words)
            for words in (self._guided.gradient, self._guided.training_input, self._guided.advice)
        ]
        self._guided_outputs: dict[int, Mapping[str, Share]] = {}
        stages: dict[str, Callable[[], Cost]] = {
            "naive_replay": lambda: self._replay("naive_replay"),
            "replay": lambda: self._replay("replay"),
            "naive_boundary": self._naive_boundary,
            "boundary": self._boundary,
            "naive_commitment": self._naive_commitment,
            "gate1_mpc": self._opening,
            "gate1_shares": self._verify_packages,
            "guided_replay": self._guided_replay,
            "guided_boundary": self._guided_boundary,
        }
        self.all = {
            name: measure
            for name, measure in stages.items()
            if name in compiled or not name.startswith("naive")
        }
        for size in batches:
            self.all[_batched(size)] = lambda size=size: self._batch(size)  # type: ignore[misc]

    def _replay(self, name: str, copies: int = 1) -> Cost:
        executable = self._compiled[name]
        shapes = {each.name: each.shape for each in executable.inputs}
        size = int(np.prod(shapes[EXAMPLES])) // copies

        def member(session: Session) -> Cost:
            own, following = held(self._input, session.rank)
            secrets_ = {
                part: arithmetic_share(
                    session.rank,
                    np.tile(own[place], copies).reshape(shapes[part]),
                    np.tile(following[place], copies).reshape(shapes[part]),
                    "float32",
                )
                for part, place in ((EXAMPLES, slice(0, size)), (TARGETS, slice(size, None)))
            }
            return _run(session, executable, {**self._step.weights, **secrets_})

        return _together(self._committee.each(member))

    def _batch(self, size: int) -> Cost:
        """Replay and boundary of several contributions of one round."""
        replay, boundary = self._replay(_batched(size), size), self._boundary(size)
        return Cost(
            replay.seconds + boundary.seconds,
            replay.sent_bytes + boundary.sent_bytes,
            replay.sent_messages + boundary.sent_messages,
            replay.peak_memory_bytes,
        )

    def _naive_boundary(self) -> Cost:
        def member(session: Session) -> Cost:
            pairs = {GRADIENT: self._gradient, "replay": self._replayed}
            inputs = {
                name: arithmetic_share(session.rank, *held(vector, session.rank))
                for name, vector in pairs.items()
            }
            return _run(session, self._compiled["naive_boundary"], inputs)

        return _together(self._committee.each(member))

    def _boundary(self, contributions: int = 1) -> Cost:
        def member(session: Session) -> Cost:
            evidence = {
                "gradient": list(held(self._gradient, session.rank)),
                "replay": list(held(self._replayed, session.rank)),
                "input": list(held(self._input, session.rank)),
                "advice": [],
                "trees": [],
            }
            return _call(
                session,
                counted_decide,
                boundary=self._step.boundary.canonical_json,
                input_rules=list(astuple(InputRules.of(self._step.input_format))),
                advice_form=[],
                evidence=[evidence] * contributions,
            )

        return _together(self._committee.each(member))

    def _guided_contribution(self, rank: int) -> Contribution:
        gradient, training_input, advice = (held(part, rank) for part in self._guided_parts)
        return Contribution(gradient, training_input, advice)

    def _guided_replay(self) -> Cost:
        executable = self._compiled["guided_replay"]

        def member(session: Session) -> Cost:
            contribution = self._guided_contribution(session.rank)
            secret = replay_inputs(
                session.rank, executable, self._step.input_format, [contribution]
            )
            started = time.perf_counter()
            result = session.run(executable, {**self._step.weights, **secret})
            self._guided_outputs[session.rank] = result.outputs
            return _cost(time.perf_counter() - started, result.statistics)

        return _together(self._committee.each(member))

    def _guided_boundary(self) -> Cost:
        form = advice_format_of(self._compiled["guided_replay"], self._step.input_format)
        if form is None:
            raise AssertionError("the guided replay takes no advice")

        def member(session: Session) -> Cost:
            contribution = self._guided_contribution(session.rank)
            return _call(
                session,
                counted_decide,
                boundary=self._guided.guided_boundary.canonical_json,
                input_rules=list(astuple(InputRules.of(self._step.input_format))),
                advice_form=list(astuple(form)),
                evidence=[evidence_of(contribution, self._guided_outputs[session.rank], 0)],
            )

        return _together(self._committee.each(member))

    def _naive_commitment(self) -> Cost:
        def member(session: Session) -> Cost:
            share = arithmetic_share(session.rank, *held(self._gradient, session.rank))
            return _run(session, self._compiled["naive_commitment"], {"words": share})

        return _together(self._committee.each(member))

    def _opening(self) -> Cost:
        def member(session: Session) -> Cost:
            opening: tuple[Words, Words] = held(self._tree, session.rank)
            tree = [Subject.GRADIENT.tag, self._tree_commitment, *opening]
            return _call(session, counted_opening, trees=[tree])

        return _together(self._committee.each(member))

    def _verify_packages(self) -> Cost:
        """One member's work: decode what a client sent and check it."""
        started = time.perf_counter()
        count = self._step.gradient.size
        package = SharePackage.decode(self._packages[1], Scheme.SHARES, 1, count)
        verify_package(package, Subject.GRADIENT, self._commitment)
        return Cost(time.perf_counter() - started)


def _batched(size: int) -> str:
    return f"{_BATCH}{size}"


def _run(session: Session, executable: Executable, inputs: dict[str, Any]) -> Cost:
    started = time.perf_counter()
    spent = session.run(executable, inputs).statistics
    return _cost(time.perf_counter() - started, spent)


def _cost(seconds: float, spent: RunStatistics) -> Cost:
    return Cost(seconds, spent.sent_bytes, spent.sent_messages, spent.peak_memory_bytes)


def _call(session: Session, procedure: Callable[..., list[Any]], **arguments: Any) -> Cost:
    started = time.perf_counter()
    passed, sent_bytes, sent_messages = session.call(procedure, **arguments)
    if not passed:
        raise AssertionError(f"{procedure.__name__} refused an honest step")
    return Cost(time.perf_counter() - started, sent_bytes, sent_messages)


def _together(costs: list[Cost]) -> Cost:
    return Cost(
        max(cost.seconds for cost in costs),
        sum(cost.sent_bytes for cost in costs),
        sum(cost.sent_messages for cost in costs),
        max(cost.peak_memory_bytes for cost in costs),
    )


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        round(statistics.median(cost.sent_bytes for cost in costs)),
        round(statistics.median(cost.sent_messages for cost in costs)),
        max(cost.peak_memory_bytes for cost in costs),
    )
