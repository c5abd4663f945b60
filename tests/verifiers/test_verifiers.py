"""Each verifier on cases worked out by hand, and against scipy."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from opfl_chain import verifiers
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.policy import PAPER_GRID, Policy
from opfl_chain.rules.evidence import Replay
from opfl_chain.rules.guided import GUIDED_GRID, GuidedBoundary
from opfl_chain.rules.paper import PaperBoundary
from opfl_chain.rules.registry import rule_named
from opfl_chain.system.plugins import Plugin
from opfl_chain.verifiers import registry
from opfl_chain.verifiers.norms import EiffelNormBall, NoVerifier, RoflL2, RoflLinf
from opfl_chain.verifiers.opfl import Opfl
from opfl_chain.verifiers.registry import VERIFIERS, baselines
from opfl_chain.verifiers.risefl import RiseflGaussian
from opfl_chain.verifiers.verifier import (
    BoundaryOfAnotherPolicy,
    CalibrationEmpty,
    Penalty,
    Reference,
    ReferenceMissing,
    Vector,
    Verifier,
)

SIZE = 1000
GUIDED = default_policy(LENET_61706)
PAPER = default_policy(LENET_61706, rule=rule_named("paper"))
BARE = Reference(np.zeros(2, np.float32))


def vector(*values: float) -> Vector:
    return np.array(values, np.float32)


def penalty_of(verifier, submitted: Vector, reference: Reference) -> float:  # type: ignore[no-untyped-def]
    rows = torch.from_numpy(submitted[None])
    return float(verifier.penalty([reference], rows.abs())(rows))


def test_nothing_is_rejected_without_a_verifier() -> None:
    assert NoVerifier().acceptance(vector(1e9, 0), BARE) == 1
    assert penalty_of(NoVerifier(), vector(1e9, 0), BARE) == 0


@pytest.mark.parametrize(
    ("verifier", "inside", "outside", "penalty"),
    [
        (RoflL2(5), (3, 4), (6, 8), 1.0),  # norm 10: (10 / 5 - 1)^2
        (RoflLinf(4), (4, -4), (1, -10), 2.25),  # (10 / 4 - 1)^2
    ],
)
def test_norms_are_bounded(verifier, inside, outside, penalty: float) -> None:  # type: ignore[no-untyped-def]
    assert verifier.acceptance(vector(*inside), BARE) == 1
    assert penalty_of(verifier, vector(*inside), BARE) == 0
    assert verifier.acceptance(vector(*outside), BARE) == 0
    assert penalty_of(verifier, vector(*outside), BARE) == pytest.approx(penalty)


def test_eiffel_is_a_ball_around_the_public_gradient() -> None:
    reference = Reference(vector(0, 0), public=vector(10, 10))
    assert EiffelNormBall(5).acceptance(vector(13, 14), reference) == 1
    assert EiffelNormBall(5).acceptance(vector(0, 0), reference) == 0
    assert penalty_of(EiffelNormBall(5), vector(16, 18), reference) == pytest.approx(1)
    with pytest.raises(ReferenceMissing, match="EIFFeL compares with the gradient of public"):
        EiffelNormBall(5).acceptance(vector(0, 0), BARE)


def test_bounds_are_the_largest_of_honest_steps() -> None:
    honest = [
        Reference(vector(3, 4), public=vector(3, 3)),
        Reference(vector(0, -4.5), public=vector(0, 4.5)),
    ]
    _, l2, linf, eiffel, risefl = baselines(honest)
    assert (l2.bound, linf.bound, eiffel.radius, risefl.bound) == (5, 4.5, 9, 5)  # type: ignore[attr-defined]
    for verifier in baselines(honest):
        for each in honest:
            assert verifier.acceptance(each.gradient, each) == pytest.approx(1)
    with pytest.raises(CalibrationEmpty):
        baselines([])


def test_risefl_quantile_is_that_of_the_chi_square_law() -> None:
    verifier = RiseflGaussian(1.0)
    assert chi2.logsf(verifier.quantile, 1000) == pytest.approx(-128 * math.log(2), rel=1e-9)
    assert verifier.acceptance(vector(1, 0), BARE) == 1
    median = math.sqrt(verifier.quantile / chi2.median(1000))
    assert verifier.acceptance(vector(median, 0), BARE) == pytest.approx(0.5, abs=1e-6)
    assert verifier.norm_accepted_with(0.5) == pytest.approx(median)
    assert verifier.acceptance(vector(0, 0), BARE) == 1


def test_risefl_penalty_is_the_square_of_rejection_and_has_a_slope() -> None:
    verifier = RiseflGaussian(1.0)
    submitted = torch.tensor([[verifier.norm_accepted_with(0.3), 0.0]], requires_grad=True)
    found = verifier.penalty([BARE], submitted)(submitted)
    assert found.item() == pytest.approx(0.49, abs=1e-4)
    (slope,) = torch.autograd.grad(found.sum(), submitted)
    moved = 1e-3
    ahead = RiseflGaussian(1.0).acceptance(vector(submitted[0, 0].item() + moved, 0), BARE)
    assert float(slope[0, 0]) == pytest.approx(((1 - ahead) ** 2 - 0.49) / moved, rel=0.05)


def test_risefl_audits_as_often_as_it_says() -> None:
    verifier = RiseflGaussian(1.0, projections=20, epsilon=1e-3)
    norm = verifier.norm_accepted_with(0.6)
    rows = np.zeros((2000, 2000), np.float32)
    np.fill_diagonal(rows, norm)  # orthogonal, so that their projections are independent
    accepted = verifier.audit(rows, np.random.default_rng(0))
    assert accepted.mean() == pytest.approx(0.6, abs=4 * math.sqrt(0.24 / 2000))
    assert not verifier.audit(np.full((1, 50), 100, np.float32), np.random.default_rng(0)).any()


def guided_boundary(policy: Policy) -> GuidedBoundary:
    return GuidedBoundary.from_mapping(
        {
            "policy_hash": "0x" + policy.hash.hex(),
            "spu_version": "0.9.5",
            "coordinates": SIZE,
            "grid": GUIDED_GRID,
            "allowance_shift": 13,
            "scale_quantile": 999,
            "resolution_bits": 26,
            "bounds": [128] * len(GUIDED_GRID),
            "infinity": 1024,
            "mask_tolerance": 64,
            "ceiling_tolerance": 256,
        }
    )


def paper_boundary(policy: Policy) -> PaperBoundary:
    count = len(PAPER_GRID)
    return PaperBoundary.of_bounds(policy, SIZE, [1e-5] * count, [1e-3] * count, 1e-6, 1e-3)


RULES = {"guided": (GUIDED, guided_boundary), "paper": (PAPER, paper_boundary)}


def opfl(rule: str) -> tuple[Opfl, Reference]:
    policy, boundary = RULES[rule]
    gradient = np.full(SIZE, 0.25, np.float32)
    words = policy.fixed_point.encode_array("gradient", gradient)
    return Opfl(policy, boundary(policy)), Reference(gradient, replays={rule: Replay(words, 0)})


@pytest.mark.parametrize(
    ("rule", "move", "coordinates", "accepted"),
    [
        # |G + M| / 2^13 is 6.1e-5; a unit is 2^-26, of which 1024 are 1.5e-5 and 128 are 1.9e-6
        ("guided", 6.1e-5, SIZE, True),
        ("guided", 6.4e-5, SIZE, False),
        ("guided", 7.5e-5, 1, True),
        ("guided", 7.9e-5, 1, False),
        # 1e-5 for 98 %, 1e-3 for the others
        ("paper", 0.9e-5, SIZE, True),
        ("paper", 1.1e-5, SIZE, False),
        ("paper", 0.9e-3, 20, True),
        ("paper", 0.9e-3, 21, False),
        ("paper", 1.1e-3, 1, False),
    ],
)
def test_opfl_accepts_what_its_boundary_does(
    rule: str, move: float, coordinates: int, accepted: bool
) -> None:
    verifier, reference = opfl(rule)
    submitted = reference.gradient.copy()
    submitted[:coordinates] -= np.float32(move)
    assert verifier.name == f"opfl-{rule}"
    assert verifier.acceptance(submitted, reference) == accepted
    wanted = torch.arange(SIZE, 0, -1)[None].float()
    rows = torch.from_numpy(submitted[None])
    penalty = float(verifier.penalty([reference], wanted)(rows))
    assert (penalty == 0) == accepted


@pytest.mark.parametrize("rule", RULES)
def test_opfl_has_a_slope_towards_acceptance(rule: str) -> None:
    verifier, reference = opfl(rule)
    moved = torch.from_numpy(reference.gradient[None] + np.float32(0.01)).requires_grad_()
    penalty = verifier.penalty([reference], torch.ones(1, SIZE))(moved)
    (slope,) = torch.autograd.grad(penalty.sum(), moved)
    assert (slope > 0).all()


def test_opfl_checks_advice() -> None:
    verifier, reference = opfl("guided")
    told = Replay(reference.replays["guided"].words, 0, wrong_side=65)
    assert verifier.acceptance(reference.gradient, reference) == 1
    assert (
        verifier.acceptance(
            reference.gradient, Reference(reference.gradient, replays={"guided": told})
        )
        == 0
    )


def test_opfl_refuses_what_it_cannot_compare() -> None:
    verifier, reference = opfl("guided")
    with pytest.raises(ReferenceMissing, match="OPFL, rule guided, compares with a replay in MPC"):
        verifier.acceptance(reference.gradient, BARE)
    with pytest.raises(BoundaryOfAnotherPolicy, match="calibrate a boundary"):
        Opfl(PAPER, guided_boundary(GUIDED))


class HalfSpace(Verifier):
    """A verifier of another package: the mean of a gradient must be below that of honest ones."""

    name = "half-space"

    def __init__(self, bound: float) -> None:
        self.bound = bound

    @classmethod
    def calibrated(cls, honest: Sequence[Reference]) -> HalfSpace:
        return cls(max(float(each.gradient.mean()) for each in honest))

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        return float(submitted.mean() <= self.bound)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        return lambda submitted: torch.clamp(submitted.mean(1) - self.bound, min=0) ** 2


def test_a_verifier_of_a_plug_in_is_compared_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = f"{HalfSpace.__module__}:HalfSpace"
    plugin = Plugin("opfl_chain.verifiers", "half-space", target, "half-space", "1.0")
    monkeypatch.setitem(VERIFIERS.__dict__, "_plugins", {"half-space": plugin})
    monkeypatch.setattr(VERIFIERS, "_loaded", {})
    found = baselines([Reference(vector(3, 4), public=vector(3, 3))])
    names = ["none", "rofl-l2", "rofl-linf", "eiffel", "risefl", "half-space"]
    assert [each.name for each in found] == names
    assert found[-1].bound == 3.5  # type: ignore[attr-defined]


def test_a_new_file_in_the_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sum_here.py").write_text(
        "from opfl_chain.verifiers.verifier import Verifier\n"
        "class Sum(Verifier):\n"
        "    name = 'sum'\n"
    )
    monkeypatch.setattr(verifiers, "__path__", [*verifiers.__path__, str(tmp_path)])
    assert list(registry._builtin()) == [*VERIFIERS.names(), "sum"]
    del sys.modules["opfl_chain.verifiers.sum_here"]


@pytest.mark.parametrize(
    ("verifier", "reference", "largest"),
    [
        (NoVerifier(), Reference(vector(3, 4)), 50),  # ten times the norm
        (RoflL2(5), BARE, 5),
        (RoflLinf(5), BARE, math.sqrt(50)),
        (EiffelNormBall(5), Reference(vector(0, 0), public=vector(0, 0)), 5),
        (HalfSpace(1), Reference(vector(3, 4)), 2 / 1.4),  # found by bisection
    ],
)
def test_the_largest_submission_is_at_the_bound(
    verifier: Verifier, reference: Reference, largest: float
) -> None:
    direction = vector(0.8, 0.6)
    submitted = verifier.largest_submission(direction, reference)
    assert np.linalg.norm(submitted) == pytest.approx(largest, rel=1e-5)
    assert verifier.acceptance(submitted, reference) == 1
