"""SECURITY.md names tests, and cheats in them, that are there."""

import re
from pathlib import Path

import pytest

from opfl_chain.adversaries.clients import DELIVERIES, PROOFS
from opfl_chain.adversaries.gradients.registry import ATTACKS
from opfl_chain.adversaries.members import MEMBERS
from opfl_chain.adversaries.servers import SERVERS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text().split("\n## Static analysis")[0]
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+?)`", PAGE)))
CHEATS = {name for each in (ATTACKS, DELIVERIES, MEMBERS, PROOFS, SERVERS) for name in each.names()}
NAMES = r"\((`[\w-]+`(?:,\s`[\w-]+`)*)\)"
"""Names in parentheses, behind a test or behind a claim."""


def names(listed: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", listed)


IN_PARENTHESES = sorted({name for listed in re.findall(NAMES, PAGE) for name in names(listed)})
IN_TESTS = sorted(
    {
        (path, name)
        for path, listed in re.findall(rf"`(tests/[\w/.]+)`\s{NAMES}", PAGE)
        for name in names(listed)
    }
)


def test_every_guarantee_names_tests() -> None:
    for guarantee in ("G1", "G2", "G3", "G4", "G5"):
        section = PAGE.split(f"**{guarantee}. ")[1].split("\n\n**G")[0].split("\n## ")[0]
        rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
        assert rows and all("`tests/" in row for row in rows)


@pytest.mark.parametrize("path", NAMED)
def test_named_tests_exist(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", IN_PARENTHESES)
def test_names_in_parentheses_are_cheats_or_tests(name: str) -> None:
    assert name in CHEATS or name in {test for _, test in IN_TESTS}


@pytest.mark.parametrize(("path", "name"), IN_TESTS)
def test_named_tests_have_what_is_named(path: str, name: str) -> None:
    text = (ROOT / path).read_text()
    if name.startswith("test_"):
        assert re.search(rf"^ *def {name}\(", text, re.MULTILINE)
    else:
        assert name in CHEATS
        assert re.search(rf"(?<![\w-]){name}(?![\w-])", text)
