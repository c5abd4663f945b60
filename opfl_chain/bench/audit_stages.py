"""The stages of an audit, naive and ours: compiled, run, and their costs counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from opfl_chain.bench import naive
from opfl_chain.bench.counting import Counted, counted_decide, counted_opening, cpu_seconds
from opfl_chain.bench.proved_audit import counted_answers, prove
from opfl_chain.bench.uploads import Members
from opfl_chain.lab.calibration.replayer import held, shared
from opfl_chain.lab.sample_step import (
    FRACTION_BITS,
    LARGEST_LIFT,
    LOSS_SCALE,
    GuidedStep,
    ProvedSample,
    Step,
    packages_of,
    packed,
    tree_of,
)
from opfl_chain.mpc.audit.checks import InputRules
from opfl_chain.mpc.audit.contribution import Contribution, TreeOpening, replay_inputs
from opfl_chain.mpc.local import Committee
from opfl_chain.mpc.replay.arrays import EXAMPLES, GRADIENT, TARGETS
from opfl_chain.mpc.replay.compiler import ExecutableCache
from opfl_chain.mpc.replay.programs import guided_replay_program, replay_program
from opfl_chain.mpc.session.executable import Executable, MpcOptions
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.mpc.session.session import Session
from opfl_chain.mpc.session.shares import Share, arithmetic_share
from opfl_chain.mpc.session.statistics import RunStatistics
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.shares import SharePackage, verify_package
from opfl_chain.rules.evidence import Evidence, Forms, ReplayOutputs

OURS = MpcOptions(FRACTION_BITS, compiler={"disable_deallocation_insertion": True})
NAIVE = MpcOptions(FRACTION_BITS)
BATCH = "batch_of_"


@dataclass(frozen=True)
class Cost:
    """Cost of one stage: the slowest member's seconds, and CPU time and traffic of all members."""

    seconds: float
    sent_bytes: int = 0
    sent_messages: int = 0
    peak_memory_bytes: int = 0
    rounds: int = 0
    """Messages of one member that wait for each other. SPU counts only how many it sends."""
    cpu_seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.seconds + other.seconds,
            self.sent_bytes + other.sent_bytes,
            self.sent_messages + other.sent_messages,
            max(self.peak_memory_bytes, other.peak_memory_bytes),
            self.rounds + other.rounds,
            self.cpu_seconds + other.cpu_seconds,
        )


def compile_stages(
    step: Step, batches: Sequence[int], kinds: Collection[str], with_naive: bool
) -> dict[str, Executable]:
    """Compile the SPU programs, by stage."""
    model, batch, scale = step.model, step.batch_size, float(LOSS_SCALE)
    cache = ExecutableCache()
    compiled: dict[str, Executable] = {}
    for size in sorted({1, *batches}):
        if "plain" in kinds:
            program = replay_program(model, batch, scale, size)
            compiled[batched(size)] = cache.compile(program, OURS)
        if "guided" in kinds:
            program = guided_replay_program(model, batch, scale, LARGEST_LIFT, size)
            compiled[batched(size, "guided")] = cache.compile(program, OURS)
    if with_naive:
        programs = {
            "naive_replay": naive.replay_program(model, batch),
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
        kinds: Collection[str],
        members: Members,
    ) -> None:
        self._committee = committee
        self._step = step
        self._compiled = compiled
        self._gradient = shared(step.gradient)
        self._replayed = shared(step.gradient)
        self._input = shared(step.training_input)
        self._tree_commitment, self._tree = tree_of(step.gradient)
        self._commitment, self._packages = packages_of(step.gradient)
        self._guided = GuidedStep(step.model, step.seed, step.batch_size)
        self._guided_parts = [
            shared(words)
            for words in (self._guided.gradient, self._guided.training_input, self._guided.advice)
        ]
        self._guided_outputs: dict[int, Mapping[str, Share]] = {}
        self._proved = ProvedSample(step.model, step.seed, step.batch_size)
        self._proofs = [prove(self._proved)]
        self._members = members
        self._uploads: dict[str, Sequence[bytes]] = {}
        self.all: dict[str, Callable[[], Cost]] = {}
        if "naive_replay" in compiled:
            self.all |= {
                "naive_replay": lambda: self._replay("naive_replay"),
                "naive_boundary": self._naive_boundary,
                "naive_commitment": self._naive_commitment,
            }
        if "plain" in kinds:
            self.all |= {
                "replay": lambda: self._replay(batched(1)),
                "boundary": self._boundary,
                "gate1_mpc": self._opening,
            }
        self.all["gate1_shares"] = self._verify_packages
        if "guided" in kinds:
            self.all |= {
                "guided_replay": self._guided_replay,
                "guided_boundary": self._guided_boundary,
            }
        if "proved" in kinds:
            self.all["proved_answers"] = self._answers
        for kind in kinds:
            self.all[f"{kind}_client"] = lambda kind=kind: self._client(kind)  # type: ignore[misc]
            self.all[f"{kind}_upload"] = lambda kind=kind: self._upload(kind)  # type: ignore[misc]
        of_kinds = {
            "plain": self._batch,
            "guided": lambda size: self._guided_replay(size) + self._guided_boundary(size),
            "proved": self._answers,
        }
        for kind in kinds:
            for size in batches:
                self.all[batched(size, kind)] = partial(of_kinds[kind], size)

    def _each(self, member: Callable[[Session], Cost]) -> Cost:
        """Run a stage in all members' processes, and count their CPU time."""
        before = self._cpu_seconds()
        cost = _together(self._committee.each(member))
        return replace(cost, cpu_seconds=self._cpu_seconds() - before)

    def _cpu_seconds(self) -> float:
        return sum(self._committee.each(lambda session: session.call(cpu_seconds)))

    def _client(self, kind: str) -> Cost:
        """Make all that a client delivers for an audited contribution. Training is not counted."""
        started, cpu = time.perf_counter(), time.process_time()
        parts = []
        if kind == "proved":
            proved = prove(self._proved)
            vectors = [proved.gradient, proved.training_input]
            parts.append(proved.packages)
        elif kind == "guided":
            guided = self._guided
            words = guided.gradient, guided.training_input, guided.advice
            vectors = [shared(each) for each in words]
        else:
            vectors = [shared(each) for each in (self._step.gradient, self._step.training_input)]
        parts += [packed(vector)[1] for vector in vectors]
        self._uploads[kind] = [b"".join(each) for each in zip(*parts, strict=True)]
        spent = time.process_time() - cpu
        size = sum(map(len, self._uploads[kind]))
        return Cost(time.perf_counter() - started, size, MEMBERS, cpu_seconds=spent)

    def _upload(self, kind: str) -> Cost:
        """Send it to all members, who write it to disk and acknowledge it."""
        started = time.perf_counter()
        self._members.take([self._uploads[kind]])
        return Cost(time.perf_counter() - started)

    def _answers(self, contributions: int = 1) -> Cost:
        """Answer the proofs of several contributions of one round."""
        while len(self._proofs) < contributions:
            self._proofs.append(prove(self._proved))
        proofs, sample = self._proofs[:contributions], self._proved

        def member(session: Session) -> Cost:
            rank = session.rank
            return _call(
                session,
                counted_answers,
                policy=sample.policy.canonical_json,
                boundary=sample.proved_boundary,
                weights=sample.weights,
                contexts=[each.context for each in proofs],
                packages=[each.packages[rank] for each in proofs],
                gradients=[held(each.gradient, rank) for each in proofs],
                inputs=[held(each.training_input, rank) for each in proofs],
            )

        return self._each(member)

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

        return self._each(member)

    def _batch(self, size: int) -> Cost:
        """Replay and boundary of several contributions of one round."""
        return self._replay(batched(size), size) + self._boundary(size)

    def _naive_boundary(self) -> Cost:
        def member(session: Session) -> Cost:
            pairs = {GRADIENT: self._gradient, "replay": self._replayed}
            inputs = {
                name: arithmetic_share(session.rank, *held(vector, session.rank))
                for name, vector in pairs.items()
            }
            return _run(session, self._compiled["naive_boundary"], inputs)

        return self._each(member)

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

        return self._each(member)

    def _guided_contribution(self, rank: int) -> Contribution:
        gradient, training_input, advice = (held(part, rank) for part in self._guided_parts)
        return Contribution(gradient, training_input, advice)

    def _guided_replay(self, contributions: int = 1) -> Cost:
        executable = self._compiled[batched(contributions, "guided")]

        def member(session: Session) -> Cost:
            contribution = self._guided_contribution(session.rank)
            secret = replay_inputs(
                session.rank,
                executable,
                self._step.input_format,
                self._guided.advice_format,
                [contribution] * contributions,
            )
            started = time.perf_counter()
            result = session.run(executable, {**self._step.weights, **secret})
            self._guided_outputs[session.rank] = result.outputs
            return _cost(time.perf_counter() - started, result.statistics)

        return self._each(member)

    def _guided_boundary(self, contributions: int = 1) -> Cost:
        def member(session: Session) -> Cost:
            contribution = self._guided_contribution(session.rank)
            outputs = self._guided_outputs[session.rank]
            form = self._step.input_format
            return _call(
                session,
                counted_decide,
                boundary=self._guided.guided_boundary,
                forms=Forms(form.feature_words, self._guided.advice_format),
                input_rules=InputRules.of(form),
                evidence=[contribution.evidence(outputs, at) for at in range(contributions)],
                trees=[[]] * contributions,
            )

        return self._each(member)

    def _naive_commitment(self) -> Cost:
        def member(session: Session) -> Cost:
            share = arithmetic_share(session.rank, *held(self._gradient, session.rank))
            return _run(session, self._compiled["naive_commitment"], {"words": share})

        return self._each(member)

    def _opening(self) -> Cost:
        def member(session: Session) -> Cost:
            opening = held(self._tree, session.rank)
            tree = TreeOpening(Subject.GRADIENT, self._tree_commitment, opening)
            return _call(session, counted_opening, trees=[tree])

        return self._each(member)

    def _verify_packages(self) -> Cost:
        """Decode and check a client's package, as one member does."""
        started, cpu = time.perf_counter(), time.process_time()
        count = self._step.gradient.size
        package = SharePackage.decode(self._packages[1], Scheme.SHARES, 1, count)
        verify_package(package, Subject.GRADIENT, self._commitment)
        spent = MEMBERS * (time.process_time() - cpu)
        return Cost(time.perf_counter() - started, cpu_seconds=spent)


def batched(size: int, kind: str = "plain") -> str:
    """Return the name of the stage that audits several contributions of one round."""
    return f"{BATCH}{size}" if kind == "plain" else f"{kind}_{BATCH}{size}"


def _run(session: Session, executable: Executable, inputs: dict[str, Any]) -> Cost:
    started = time.perf_counter()
    spent = session.run(executable, inputs).statistics
    return _cost(time.perf_counter() - started, spent)


def _cost(seconds: float, spent: RunStatistics) -> Cost:
    messages = spent.sent_messages
    return Cost(seconds, spent.sent_bytes, messages, spent.peak_memory_bytes, messages)


def _call(session: Session, procedure: Callable[..., Counted], **arguments: Any) -> Cost:
    started = time.perf_counter()
    passed, sent_bytes, sent_messages, rounds = session.call(procedure, **arguments)
    if not passed:
        raise AssertionError(f"{procedure.__name__} rejected an honest step")
    return Cost(time.perf_counter() - started, sent_bytes, sent_messages, rounds=rounds)


def _together(costs: list[Cost]) -> Cost:
    return Cost(
        max(cost.seconds for cost in costs),
        sum(cost.sent_bytes for cost in costs),
        sum(cost.sent_messages for cost in costs),
        max(cost.peak_memory_bytes for cost in costs),
        max(cost.rounds for cost in costs),
    )
