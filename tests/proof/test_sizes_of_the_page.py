"""The sizes of statements and proofs in docs/PROOF.md."""

from pathlib import Path

import numpy as np
import pytest

from opfl_chain.learning.proved_step import statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.proof.closing import Tolerance
from opfl_chain.protocol.proof.package import ProofForm
from opfl_chain.rules.registry import rule_named

PROOF = Path(__file__).resolve().parents[2] / "docs" / "PROOF.md"


@pytest.mark.parametrize(
    ("model", "title"), [("lenet-61706", "61,706"), ("lenet-431080", "431,080")]
)
@pytest.mark.parametrize("batch_size", [1, 8])
def test_sizes_are_those_of_the_page(model: str, title: str, batch_size: int) -> None:
    policy = default_policy(model, rule=rule_named("proved"), batch_size=batch_size)
    layout = model_of(policy).layout
    weights = layout.unflatten(np.zeros(layout.size, np.float32))
    statement = statement_of(policy, Tolerance(1, 1), weights)
    words = ProofForm.of(statement).words
    page = PROOF.read_text(encoding="utf-8")
    if (model, batch_size) == ("lenet-431080", 8):
        assert f"n = {statement.residuals:,}" in page
        return
    row = next(
        line for line in page.splitlines() if line.startswith(f"| LeNet-{title}, {batch_size} |")
    )
    numbers = [cell.strip() for cell in row.split("|")[2:6]]
    assert numbers[0] == f"{statement.residuals:,}"
    assert numbers[2:] == [f"{statement.products:,}", f"{words:,}"]
    assert f"{words:,}" in page.split("*What exact sides and activations cost*")[1].split("\n\n")[0]
