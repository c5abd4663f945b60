"""One training step, audited by three parties on this machine.

The client's side is that of the client daemon, the committee's side that of its members: real
commitments, shares and deliveries, judged by Algorithm 1. Only the chain is left out.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opfl_chain.adversaries.clients import AttackingConduct
from opfl_chain.adversaries.gradients.attack import Attack
from opfl_chain.adversaries.gradients.registry import attack_named
from opfl_chain.api import Progress, silent
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.lab.calibration.replayer import Replayer
from opfl_chain.lab.calibration.steps import HonestStep
from opfl_chain.learning.data.examples import Examples, features_of
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.mpc.audit.judge import Judgement, Rules, judge
from opfl_chain.mpc.audit.proved import examine
from opfl_chain.mpc.local import Committee, LocalCommittee, MemoryCommittee
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.mpc.session.session import Session
from opfl_chain.protocol.aggregate import weights_hash
from opfl_chain.protocol.audit_exchange import conclude
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.delivery import Claim, Delivery
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.protocol.ring import Words
from opfl_chain.protocol.sealing import derived_key
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.client.conduct import Conduct, FinishedStep, LocalContribution
from opfl_chain.roles.client.contribution import Contributor, unnamed
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.evidence import Observation
from opfl_chain.rules.registry import require_all_named, require_plugins, rule_of

Vector = NDArray[np.float32]
Labels = NDArray[np.int64]

_SESSION_SECONDS = 600.0
"""Only a hanging session reaches this limit."""
_ACTIVITIES = ("compiling the replay", "training", "auditing", "explaining")
_CLIENT, _ROUND = ClientIndex(0), RoundNumber(0)


@dataclass(frozen=True)
class StepVerdict:
    """The verdict of three parties on one step."""

    passed: bool
    causes: tuple[str, ...] = ()
    """The parts of the rule that the step violates, such as `infinity`.

    MPC opens a single bit. The causes come from a second replay, opened for the caller, who owns
    the step; a step at the very edge of the boundary may be inside it at one replay only. Those of
    a proved step are known to the client.
    """
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Durations of the activities, in order."""
    delivered_bytes: int = 0
    """The size of the client's deliveries to all three parties."""

    def __str__(self) -> str:
        if self.passed:
            return "passed"
        return f"failed: {', '.join(self.causes) or 'inside the boundary at the second replay'}"


def audit_step(
    policy: Policy | str,
    boundary: Boundary | None,
    batch: Examples | tuple[Vector, Labels],
    *,
    weights: Vector | None = None,
    gradient: Vector | None = None,
    attack: Attack | str | None = None,
    processes: bool = False,
    progress: Progress = silent,
) -> StepVerdict:
    """Audit one step of a client among three parties on this machine.

    `policy` may be the name of a model, for its default policy; without `boundary`, the one that
    comes with the package is used. The batch is images of a data set, which are normalised as the
    policy says, or a pair of features and labels. The step is honest unless `gradient` or `attack`
    says what the client submits instead. `weights` are flat; by default they are the first model of
    the policy. The parties are threads, or with `processes` separate processes.
    """
    if isinstance(policy, str):
        policy = default_policy(policy, batch_size=_size(batch))
    require_plugins(policy)
    if boundary is None:
        boundary = reference_boundary(policy)
    require_all_named(policy, boundary.rule)
    layout = model_of(policy).layout
    if weights is None:
        weights = layout.flatten(initial_parameters(layout, policy.seeds.model))
    weights = _finite("weights", weights)
    conduct = _conduct(attack, gradient)
    own = _Batch.of(policy, batch, conduct)
    own.input_words(_ROUND)  # refuses a batch that is not the policy's, before anything runs
    timer = _Timer(progress)
    with timer("compiling the replay"):
        rules = Rules(policy, boundary, replays := Replays(policy))
        tolerance = rule_of(boundary).tolerance(boundary)
        if tolerance is None:
            replays(1)
    with timer("training"):
        secret = secrets.token_bytes(32)
        contributor = Contributor(policy, boundary, own, secret, conduct, rounds=1)
        opening = weights_hash(weights)
        made = contributor.make(_ROUND, opening, weights, b"")
        commitment = contributor.committed_gradient(opening, made.gradient).commitment
        claim = Claim(_CLIENT, _ROUND, commitment, contributor.dataset.root, audited=True)
        deliveries = contributor.deliveries(_ROUND, opening, made)
    arrays = layout.unflatten(weights)
    delivered = MEMBERS * sum(
        _bundle_bytes(contributor, opening, made, kind) for kind in BundleKind
    )
    if tolerance is not None:
        with timer("auditing"):
            statement = statement_of(policy, tolerance, arrays)
            passed = _answered(rules, statement, weights, claim, deliveries)
        return StepVerdict(passed, made.failures, timer.seconds, delivered)

    def member(session: Session) -> Judgement:
        return judge(session, rules, arrays, [claim], {_CLIENT: deliveries[session.rank]})

    with _committee(processes) as committee:
        with timer("auditing"):
            passed = _CLIENT in committee.each(member)[0].verdict.passed
        causes: list[str] = []
        if not passed:
            with timer("explaining"):
                replayed = Replayer(committee, policy).replay(_honest_step(policy, weights, own))
                observation = Observation.of(policy, made.gradient, replayed)
                causes = rule_of(boundary).causes(boundary, observation)
    return StepVerdict(passed, tuple(causes), timer.seconds, delivered)


def _answered(
    rules: Rules,
    statement: Statement,
    weights: Vector,
    claim: Claim,
    deliveries: Sequence[Delivery],
) -> bool:
    """Have each of three members answer on a proved step, and return the verdict."""

    def context_of(each: Claim, input_commitment: bytes) -> bytes:
        return unnamed(_ROUND, weights_hash(weights), each.commitment, input_commitment)

    rows, words = {}, {}
    for seat, delivery in enumerate(deliveries):
        expected, given = rules.expected(seat), {_CLIENT: delivery}
        found = examine(expected, statement, context_of, [claim], given)
        rows[seat], words[seat] = found[_CLIENT]
    return conclude(rows, words).outcome is Outcome.PASSED


def _bundle_bytes(
    contributor: Contributor, opening: bytes, made: LocalContribution, kind: BundleKind
) -> int:
    """Return the size of a bundle that is sealed to three members."""
    keys = [derived_key(secrets.token_bytes(32), b"member").public for _ in range(MEMBERS)]
    parts = contributor.parts(kind, _ROUND, opening, made)
    return len(contributor.seal(kind, opening, opening, parts, keys).encode())


@dataclass(frozen=True, eq=False)
class _Batch:
    """The one batch of a client that takes one step."""

    policy: Policy
    features: Vector
    labels: Labels

    @classmethod
    def of(
        cls, policy: Policy, given: Examples | tuple[Vector, Labels], conduct: Conduct
    ) -> _Batch:
        """Make the batch that the client commits to, with the labels that it claims."""
        if isinstance(given, Examples):
            given = features_of(given.images, policy.data), given.labels
        features, labels = np.asarray(given[0], np.float32), np.asarray(given[1], np.int64)
        return cls(policy, features, conduct.training_labels(labels, policy.data.classes))

    def batch(self, t: int) -> tuple[Vector, Labels]:
        del t
        return self.features, self.labels

    def input_words(self, t: int) -> Words:
        return self.policy.input_format.encode(*self.batch(t))


def _finite(name: str, values: ArrayLike) -> Vector:
    array = np.asarray(values, np.float32)
    if not np.isfinite(array).all():
        at = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"{name}[{at}] is {array.flat[at]}: all must be finite float32 numbers")
    return array


def _size(given: Examples | tuple[Vector, Labels]) -> int:
    return len(given if isinstance(given, Examples) else given[1])


class _Given(Conduct):
    """Commits to the gradient that the caller gives."""

    def __init__(self, gradient: Vector) -> None:
        self._gradient = gradient

    def gradient(self, step: FinishedStep, memory: bytes) -> tuple[Vector, bytes]:
        if self._gradient.shape != step.gradient.shape:
            raise ValueError(
                f"the gradient has shape {self._gradient.shape}, it must be flat with one value for"
                f" each trainable parameter: {step.gradient.shape}"
            )
        return self._gradient, memory


def _conduct(attack: Attack | str | None, gradient: Vector | None) -> Conduct:
    if gradient is not None and attack is not None:
        raise ValueError("gradient and attack both define the submission: give only one of them")
    if gradient is not None:
        return _Given(_finite("gradient", gradient))
    if attack is None:
        return Conduct()
    return AttackingConduct(attack_named(attack) if isinstance(attack, str) else attack)


def _honest_step(policy: Policy, weights: Vector, batch: _Batch) -> HonestStep:
    step, (examples, labels) = LocalStep.of_policy(policy), batch.batch(_ROUND)
    arrays = step.model.layout.unflatten(weights)
    result = step.run(arrays, examples, labels, pre_activations=True)
    found = result.gradient, result.logits, result.relu_inputs
    return HonestStep(_ROUND, weights, examples, labels, *found)


@contextmanager
def _committee(processes: bool) -> Iterator[Committee]:
    if processes:
        with LocalCommittee() as local, local.session(seconds=_SESSION_SECONDS) as committee:
            yield committee
    else:
        with MemoryCommittee() as memory:
            yield memory


class _Timer:
    """Measures activities, and reports their beginning."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, activity: str) -> Iterator[None]:
        self._progress(activity, len(self.seconds), len(_ACTIVITIES))
        started = time.monotonic()
        yield
        self.seconds[activity] = time.monotonic() - started
