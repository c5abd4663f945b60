"""The stages of an audit, naive and ours: compiled, run, and their costs counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opfl_chain.bench import naive
from opfl_chain.circuits.boolean import Transport
from opfl_chain.lab.calibration.replayer import held, shared
from opfl_chain.lab.sample_step import (
    FRACTION_BITS,
    LARGEST_LIFT,
    LOSS_SCALE,
    GuidedStep,
    Step,
    packages_of,
    tree_of,
)
from opfl_chain.mpc.audit.checks import InputRules
from opfl_chain.mpc.audit.contribution import Contribution, TreeOpening, replay_inputs
from opfl_chain.mpc.audit.judge import decide, decide_openings
from opfl_chain.mpc.local import Committee
from opfl_chain.mpc.replay.compiler import ExecutableCache
from opfl_chain.mpc.replay.programs import (
    EXAMPLES,
    GRADIENT,
    TARGETS,
    guided_replay_program,
    replay_program,
)
from opfl_chain.mpc.session.executable import Executable, MpcOptions
from opfl_chain.mpc.session.session import Session
from opfl_chain.mpc.session.shares import Share, arithmetic_share
from opfl_chain.mpc.session.statistics import RunStatistics
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.shares import SharePackage, verify_package
from opfl_chain.rules.evidence import Evidence, Forms, ReplayOutputs

Counted = tuple[bool, int, int]
"""The verdict on all contributions, and the bytes and messages that a member sent."""
OURS = MpcOptions(FRACTION_BITS, compiler={"disable_deallocation_insertion": True})
NAIVE = MpcOptions(FRACTION_BITS)
BATCH = "batch_of_"


@dataclass(frozen=True)
class Cost:
    """Cost of one stage: the slowest member's seconds, and the traffic of all members."""

    seconds: float
    sent_bytes: int = 0
    sent_messages: int = 0
    peak_memory_bytes: int = 0


class CountingTransport:
    """A transport that counts sent bytes and messages."""

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


def counted_decide(transport: Transport, **arguments: Any) -> Counted:
    """Run the procedure `decide`, counting."""
    counting = CountingTransport(transport)
    passed = all(decide(counting, **arguments))
    return passed, counting.sent_bytes, counting.sent_messages


def counted_opening(transport: Transport, **arguments: Any) -> Counted:
    """Run the procedure `decide_openings`, counting."""
    counting = CountingTransport(transport)
    passed = all(decide_openings(counting, **arguments))
    return passed, counting.sent_bytes, counting.sent_messages


def compile_stages(step: Step, batches: Sequence[int], with_naive: bool) -> dict[str, Executable]:
    """Compile the SPU programs, by stage."""
    model, cache = step.model, ExecutableCache()
    compiled = {
        batched(size): cache.compile(replay_program(model, 1, float(LOSS_SCALE), size), OURS)
        for size in {1, *batches}
    }
    compiled["replay"] = compiled[batched(1)]
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
            self.all[batched(size)] = lambda size=size: self._batch(size)  # type: ignore[misc]

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
        replay, boundary = self._replay(batched(size), size), self._boundary(size)
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
            evidence = Evidence(
                held(self._gradient, session.rank),
                held(self._input, session.rank),
                None,
                ReplayOutputs(held(self._replayed, session.rank)),
            )
            return _call(
                session,
                counted_decide,
                boundary=self._step.boundary,
                forms=Forms(self._step.input_format.feature_words),
                input_rules=InputRules.of(self._step.input_format),
                evidence=[evidence] * contributions,
                trees=[[]] * contributions,
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
                session.rank,
                executable,
                self._step.input_format,
                self._guided.advice_format,
                [contribution],
            )
            started = time.perf_counter()
            result = session.run(executable, {**self._step.weights, **secret})
            self._guided_outputs[session.rank] = result.outputs
            return _cost(time.perf_counter() - started, result.statistics)

        return _together(self._committee.each(member))

    def _guided_boundary(self) -> Cost:
        def member(session: Session) -> Cost:
            contribution = self._guided_contribution(session.rank)
            form = self._step.input_format
            return _call(
                session,
                counted_decide,
                boundary=self._guided.guided_boundary,
                forms=Forms(form.feature_words, self._guided.advice_format),
                input_rules=InputRules.of(form),
                evidence=[contribution.evidence(self._guided_outputs[session.rank], 0)],
                trees=[[]],
            )

        return _together(self._committee.each(member))

    def _naive_commitment(self) -> Cost:
        def member(session: Session) -> Cost:
            share = arithmetic_share(session.rank, *held(self._gradient, session.rank))
            return _run(session, self._compiled["naive_commitment"], {"words": share})

        return _together(self._committee.each(member))

    def _opening(self) -> Cost:
        def member(session: Session) -> Cost:
            opening = held(self._tree, session.rank)
            tree = TreeOpening(Subject.GRADIENT, self._tree_commitment, opening)
            return _call(session, counted_opening, trees=[tree])

        return _together(self._committee.each(member))

    def _verify_packages(self) -> Cost:
        """Decode and check a client's package, as one member does."""
        started = time.perf_counter()
        count = self._step.gradient.size
        package = SharePackage.decode(self._packages[1], Scheme.SHARES, 1, count)
        verify_package(package, Subject.GRADIENT, self._commitment)
        return Cost(time.perf_counter() - started)


def batched(size: int) -> str:
    return f"{BATCH}{size}"


def _run(session: Session, executable: Executable, inputs: dict[str, Any]) -> Cost:
    started = time.perf_counter()
    spent = session.run(executable, inputs).statistics
    return _cost(time.perf_counter() - started, spent)


def _cost(seconds: float, spent: RunStatistics) -> Cost:
    return Cost(seconds, spent.sent_bytes, spent.sent_messages, spent.peak_memory_bytes)


def _call(session: Session, procedure: Callable[..., Counted], **arguments: Any) -> Cost:
    started = time.perf_counter()
    passed, sent_bytes, sent_messages = session.call(procedure, **arguments)
    if not passed:
        raise AssertionError(f"{procedure.__name__} rejected an honest step")
    return Cost(time.perf_counter() - started, sent_bytes, sent_messages)


def _together(costs: list[Cost]) -> Cost:
    return Cost(
        max(cost.seconds for cost in costs),
        sum(cost.sent_bytes for cost in costs),
        sum(cost.sent_messages for cost in costs),
        max(cost.peak_memory_bytes for cost in costs),
    )
