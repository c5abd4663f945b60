"""SECURITY.md names tests that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+?)`", (ROOT / "SECURITY.md").read_text())))


def test_every_guarantee_names_tests() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    for guarantee in ("G1", "G2", "G3", "G4", "G5"):
        section = page.split(f"**{guarantee}. ")[1].split("\n\n**G")[0].split("\n## ")[0]
        rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
        assert rows and all("`tests/" in row for row in rows)


@pytest.mark.parametrize("path", NAMED)
def test_named_tests_exist(path: str) -> None:
    assert (ROOT / path).exists()
