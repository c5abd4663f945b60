"""Every example is a short script that runs by itself."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

EXPECTED = {
    "audit_one_step": [
        r"honest +passed",
        r"amplify:1.01 +failed: .*quantile",
        r"reverse +failed: .*infinity",
        r"free-rider +failed:",
    ],
    "new_model": ["0 of 2 held-out honest steps rejected", "honest: passed", "reverse: failed: "],
    "new_operation": [r"honest: passed\namplify:1.01: failed: "],
    "new_attack": [r"sparse:0.1: failed", r"sparse:1: passed", r"Sparse\(kept=0.5\): failed"],
    "new_verifier": [
        r"sign-agreement +accepts 100% of gradients times 1\n",
        r"sign-agreement +accepts +0% of gradients times -1\n",
    ],
    "new_rule": [r"passed\nfailed: infinity\n"],
}


def test_all_examples_are_tested():
    assert {path.stem for path in EXAMPLES} == set(EXPECTED)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short(path):
    assert len(path.read_text().splitlines()) < 60


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    ran = subprocess.run(
        [sys.executable, path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for line in EXPECTED[path.stem]:
        assert re.search(line, ran.stdout), ran.stdout
