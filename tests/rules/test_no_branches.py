"""Code outside a rule depends neither on its name nor on its classes: callers ask the rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import opfl_chain
from opfl_chain.rules.registry import BUILTIN_RULES

PACKAGE = Path(opfl_chain.__file__).parent

NAMES = {rule.name for rule in BUILTIN_RULES}
CLASSES = {
    *(
        f"{rule}{part}"
        for rule in ("Paper", "Guided", "Proved")
        for part in ("Boundary", "Profile", "Rule")
    ),
    *("PlainReplay", "GuidedReplay", "ProvedReplay"),
}

ALLOWED = {
    "protocol/policy.py": "declares the kinds of replay",
    "bench/audit.py": "measures all kinds of audits side by side",
    "bench/audit_stages.py": "measures all kinds of audits side by side",
    "bench/proved_audit.py": "measures audits of proved steps",
    "bench/naive.py": "measures the paper's algorithm as printed",
    "bench/attacks/catalogue.py": "knows which attacks a kind of audits has",
    "lab/sample_step.py": "constructs a boundary of either rule, to measure their circuits",
}


def branches(source: str) -> Iterator[str]:
    """Yield the uses of a rule's class, and the comparisons with a rule's name."""
    for node in ast.walk(ast.parse(source)):
        line = f"line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Name | ast.alias | ast.Attribute):
            named = node.attr if isinstance(node, ast.Attribute) else None
            named = named or (node.id if isinstance(node, ast.Name) else node.name)
            if named in CLASSES:
                yield f"{line}: {named}"
        if isinstance(node, ast.Compare | ast.MatchValue):
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and each.value in NAMES:
                    yield f"{line}: compares with {each.value!r}"


@pytest.mark.parametrize(
    "source",
    [
        "from opfl_chain.rules.paper import PaperBoundary",
        "isinstance(boundary, guided.GuidedBoundary)",
        "if rule == 'guided': pass",
        "match rule:\n case 'paper': pass",
    ],
)
def test_branches_are_found(source: str) -> None:
    assert list(branches(source))


def test_no_other_module_branches_on_rules() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith("rules/") and place not in ALLOWED:
            found[place] = list(branches(path.read_text(encoding="utf-8")))
    assert {place: each for place, each in found.items() if each} == {}


def test_every_exception_is_needed() -> None:
    for place in ALLOWED:
        assert list(branches((PACKAGE / place).read_text(encoding="utf-8"))), place
