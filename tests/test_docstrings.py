"""Docstrings and comments of contracts open with a noun or a verb, not with a riddle."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RIDDLES = ("What", "Who", "Whose", "Whom", "Whoever", "Whatever", "Of", "Whether", "How")
GENERATED = "bindings"
SOURCES = [
    path
    for folder in ("opfl_chain", "tests", "scripts", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if GENERATED not in path.parts
]
CONTRACTS = sorted((ROOT / "contracts").rglob("*.sol"))
NATSPEC = re.compile(r"(?:///|\*) @(?:title|notice|dev|(?:param|return) \w+) (.*)")


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Strings that stand alone: of modules, classes, functions and values."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def comments(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := NATSPEC.search(line):
            yield number, found[1]


def riddles(path: Path, texts: Iterator[tuple[int, str]]) -> list[str]:
    place = path.relative_to(ROOT)
    return [
        f"{place}:{line}: {text.strip():.60}"
        for line, text in texts
        if re.split(r"\W", text.strip())[0] in RIDDLES
    ]


def test_docstrings_say_the_noun_first() -> None:
    assert [found for path in SOURCES for found in riddles(path, docstrings(path))] == []


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.stem)
def test_comments_of_contracts_say_the_noun_first(path: Path) -> None:
    assert riddles(path, comments(path)) == []
