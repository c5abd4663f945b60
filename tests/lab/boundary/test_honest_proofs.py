"""Honest proofs in the clear: implied gradients, use of bounds, and cheats within the slack."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from opfl_chain.cli import app
from opfl_chain.lab.boundary.headroom import (
    VARIATIONS,
    HeadroomPlan,
    calibrated_on,
    headroom_rows,
    others,
)
from opfl_chain.lab.boundary.mask_attack import MaskAttacker
from opfl_chain.lab.boundary.records import RunName, quiet
from opfl_chain.lab.boundary.side_choice import other_side_is_seen, sign_window
from opfl_chain.lab.boundary.slack_attack import SLACK, NoisyStep, attack, seen_shifts
from opfl_chain.lab.calibration.implied import ImpliedReplayer, implied, implied_gradient, lift_in
from opfl_chain.lab.calibration.proving import (
    BOUNDS,
    StepProver,
    form_of,
    lengths,
    tolerance_of,
)
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.lab.calibration.run import Progress
from opfl_chain.lab.calibration.steps import TrainedStep, honest_run, trained_steps
from opfl_chain.lab.errors import NoProofs
from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.proof.prover import Usage
from opfl_chain.rules.evidence import Observation
from opfl_chain.rules.registry import rule_named

PROVED = rule_named("proved")
RUN = RunName.parse("lenet-61706-synthetic-batch2")
DATA = synthetic_dataset(train=40, test=1)
POLICY = RUN.policy(PROVED)
RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"
PLAN = HeadroomPlan(training_steps=6, judged=2, proofs=1, calibration_steps=3)


@pytest.fixture(scope="module")
def step() -> TrainedStep:
    return next(trained_steps(POLICY, DATA.train, 1))


@pytest.fixture(scope="module")
def prover() -> StepProver:
    return StepProver(POLICY, tolerance_of(calibrated_on(POLICY, PROVED, DATA, 2)))


def test_the_implied_gradient_is_that_of_the_step_up_to_rounding(
    prover: StepProver, step: TrainedStep
) -> None:
    proved = prover.run(step)
    gradient = implied_gradient(POLICY, proved)
    apart = np.linalg.norm(gradient - proved.result.gradient) / np.linalg.norm(gradient)
    assert 0 < apart < 1e-6
    replayed = implied(POLICY, proved)
    seen = Observation.of(POLICY, proved.result.gradient, replayed)
    assert replayed.lift == lift_in(proved) <= POLICY.largest_lift
    assert np.allclose(seen.replay.words * POLICY.fixed_point.quantum, gradient, atol=1e-14)
    profile = PROVED.profile(seen)
    assert profile.distance / profile.norm == pytest.approx(apart, rel=1e-3)


def test_recorded_steps_are_those_of_clients_that_prove(
    prover: StepProver, step: TrainedStep
) -> None:
    ((_, _, kept),) = honest_run(POLICY, DATA.train, 1, {0})
    assert kept is not None
    proved = prover.run(step)
    assert np.array_equal(kept.gradient, proved.result.gradient)
    (replayed,) = ImpliedReplayer(POLICY).replay_all([kept])
    assert np.array_equal(replayed.gradient, implied(POLICY, proved).gradient)


def test_an_honest_step_uses_less_than_half_of_every_bound_and_is_accepted(
    prover: StepProver, step: TrainedStep
) -> None:
    proved = prover.run(step)
    usage = prover.rehearse(step, proved)
    assert usage.holds
    assert usage.bounds.keys() == set(BOUNDS)
    assert max(lengths(usage).values()) < 0.5
    assert prover.prove(step, proved)


def test_a_moved_gradient_is_seen_and_not_accepted(prover: StepProver, step: TrainedStep) -> None:
    proved = prover.run(step)
    moved = replace(proved.result, gradient=proved.result.gradient * np.float32(1 + 3e-5))
    usage = prover.rehearse(step, replace(proved, result=moved))
    assert usage.bounds["gradient"] > 1
    assert usage.broken == ("gradient.bound",)
    assert not prover.prove(step, replace(proved, result=moved))


def test_sums_of_squares_are_compared_as_lengths() -> None:
    usage = Usage({"gradient": 0.25, "residuals": 0.16, "words": 0.3})
    assert lengths(usage) == {"gradient": 0.5, "residuals": 0.4, "words": 0.3}


def test_rows_that_are_known_are_not_made_again() -> None:
    def rows(known: list[dict[str, object]]) -> list[dict[str, object]]:
        return list(headroom_rows([RUN], PROVED, ["default"], PLAN, known, lambda _: DATA))

    (row,) = rows([])
    assert (row["honest_steps"], row["would_fail"]) == (2, 0)
    assert (row["proofs_made"], row["proofs_accepted"]) == (1, 1)
    marked = {**row, "marked": True}
    assert rows([marked]) == [marked]
    assert "marked" not in rows([{**marked, "judged": 1}])[0]
    assert row["statement"] == form_of(POLICY)
    assert "marked" not in rows([{**marked, "statement": "0x" + bytes(32).hex()}])[0]
    unnamed = {name: value for name, value in marked.items() if name != "statement"}
    assert "marked" not in rows([unnamed])[0]


def test_form_of_proofs_follows_what_they_state() -> None:
    coarser = POLICY.replay.model_copy(update={"value_bits": 27})
    assert form_of(POLICY.model_copy(update={"replay": coarser})) != form_of(POLICY)


def test_an_interrupted_run_keeps_what_it_judged() -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if what == "judging":
            raise KeyboardInterrupt

    def rows(known: list[dict[str, object]], progress: Progress) -> list[dict[str, object]]:
        runs, names = [RUN, RUN], ["default"]
        return list(headroom_rows(runs, PROVED, names, PLAN, known, lambda _: DATA, progress))

    (short,) = rows([], interrupt)
    assert (short["judged"], short["honest_steps"], short["last_step"]) == (2, 1, 4)
    whole = rows([short], quiet)
    assert [row["honest_steps"] for row in whole] == [2, 2]
    another = {**short, "variation": "seed 1"}
    assert others([short, another], whole) == [another]


def test_variations_have_policies_of_their_own() -> None:
    hashes = {each.policy(RUN, PROVED).hash for each in VARIATIONS.values()}
    assert len(hashes) == len(VARIATIONS)
    assert VARIATIONS["default"].policy(RUN, PROVED) == POLICY


def test_a_boundary_of_replays_has_no_proofs() -> None:
    boundary = reference_boundary(default_policy("lenet-61706", batch_size=8))
    with pytest.raises(NoProofs, match="rule guided judges replays"):
        tolerance_of(boundary)


def noisy(prover: StepProver, step: TrainedStep) -> tuple[NoisyStep, float]:
    proved = prover.run(step)
    kept = step.computed(proved.result)
    assert POLICY.proof is not None
    return NoisyStep(POLICY, POLICY.proof, kept, proved), math.sqrt(proved.statement.residuals)


def test_a_step_without_residuals_has_the_implied_gradient(
    prover: StepProver, step: TrainedStep
) -> None:
    attacked, _ = noisy(prover, step)
    exact = attacked.gradient(attacked.zeros()).detach().numpy()
    proved = prover.run(step)
    expected = implied_gradient(POLICY, proved) * POLICY.data.batch_size * 2.0 ** lift_in(proved)
    assert np.linalg.norm(exact - expected) < 1e-7 * np.linalg.norm(expected)


def test_power_iteration_finds_more_than_any_single_layer(
    prover: StepProver, step: TrainedStep
) -> None:
    attacked, budget = noisy(prover, step)
    most, direction = attacked.largest_move(budget)
    honest = attacked.gradient(attacked.zeros()).detach()
    length = math.sqrt(sum(float((each * each).sum()) for each in direction.values()))
    assert length == pytest.approx(budget)
    for name, (shape, _) in attacked.units.items():
        tried = {**attacked.zeros()}
        tried[name] = torch.ones(shape, dtype=torch.float64) * (
            budget / math.sqrt(math.prod(shape))
        )
        moved = (attacked.gradient(tried).detach() - honest).norm() / honest.norm()
        assert float(moved) <= most * 1.01, name


def test_no_attack_moves_the_gradient_by_more_than_the_goal(
    prover: StepProver, step: TrainedStep
) -> None:
    found = attack(prover, step)
    assert 0 < found.residuals_move < found.total < found.proved_move < 5e-5
    assert 0 < found.comparison_move < 1e-6
    assert found.tolerance_move > SLACK * prover.tolerance.relative / 2**40


def test_sides_next_to_zero_are_chosen_in_batches_too(
    prover: StepProver, step: TrainedStep
) -> None:
    proved = prover.run(step)
    kept = step.computed(proved.result)
    sizes = np.sort(np.abs(kept.pre_activations))
    found = MaskAttacker(RUN.model, float(sizes[2])).attack(kept)
    assert found.free_units == 3
    assert found.change_chosen > 0


def test_no_side_can_be_chosen(prover: StepProver, step: TrainedStep) -> None:
    proved = prover.run(step)
    assert sign_window(proved.statement) == 0
    assert other_side_is_seen(prover, step, proved)


def test_coarse_signs_leave_a_window(prover: StepProver, step: TrainedStep) -> None:
    statement = prover.run(step).statement
    coarse = tuple(
        replace(each, least=each.least >> 14) if each.name.endswith(".side") else each
        for each in statement.equations
    )
    assert 0 < sign_window(replace(statement, equations=coarse)) < 1e-7


def test_a_real_cheat_along_the_best_direction_is_seen(
    prover: StepProver, step: TrainedStep
) -> None:
    assert seen_shifts(prover, step, 0.3, 3) == 0
    assert seen_shifts(prover, step, 2.0, 3) == 1


@pytest.mark.parametrize("name", ["lenet-61706-mnist", "lenet-431080-synthetic-batch16"])
def test_runs_are_named_with_their_batch(name: str) -> None:
    assert str(RunName.parse(name)) == name


def test_headroom_and_slack_are_commands(tmp_path: Path) -> None:
    for command in ("headroom", "slack"):
        file = tmp_path / f"{command}.json"
        given = [
            "--quick",
            "--only",
            str(RUN),
            "--json",
            str(file),
            "--out",
            str(tmp_path / "t.md"),
        ]
        result = CliRunner().invoke(app, ["evaluate", command, *given])
        assert result.exit_code == 0, result.output
        (row,) = json.loads(file.read_text())["rows"]
        assert row["run"] == str(RUN)
        assert str(RUN) in (tmp_path / "t.md").read_text()


def test_slack_keeps_rows_of_other_runs(tmp_path: Path) -> None:
    file = tmp_path / "slack.json"
    kept = json.loads((RESULTS / "slack.json").read_text())
    file.write_text(json.dumps(kept))
    given = ["--training-steps", "6", "--calibration-steps", "3", "--steps", "0", "--sides", "1"]
    run = ["evaluate", "slack", *given, "--only", str(RUN), "--json", str(file)]
    result = CliRunner().invoke(app, run)
    assert result.exit_code == 0, result.output
    found = json.loads(file.read_text())
    assert found["rows"] == kept["rows"]
    *others, made = found["sides"]
    assert others == kept["sides"]
    assert made.keys() >= kept["sides"][0].keys()
    assert (made["run"], made["mask_steps"], made["other_sides_seen"]) == (str(RUN), 1, 1)
