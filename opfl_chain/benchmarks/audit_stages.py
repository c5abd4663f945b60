"""The stages of an audit, naive and ours, each to be run by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from opfl_chain.benchmarks import naive
from opfl_chain.benchmarks.counted import Cost, counted_decide, counted_opening
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
from opfl_chain.mpc.boolean import Words
from opfl_chain.mpc.committee import Committee
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.executable_cache import ExecutableCache
from opfl_chain.mpc.gates import (
    Contribution,
    advice_format_of,
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
BATCH = "batch_of_"


def compile_stages(step: Step, batches: Sequence[int], with_naive: bool) -> dict[str, Executable]:
    """What SPU runs, by stage."""
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


def batched(size: int) -> str:
    return f"{BATCH}{size}"


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
