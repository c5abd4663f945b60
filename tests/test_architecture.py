"""The tree and the walks of docs/ARCHITECTURE.md name what is there."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "opfl_chain"
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text()

WALKS = dict(
    re.findall(
        r"^(A gradient|An audit|An event), from .*?\n\n((?:\d+\. .*\n)+)", PAGE, re.MULTILINE
    )
)
MOST_HOPS = {"A gradient": 30, "An audit": 25, "An event": 11}


def steps(walk: str) -> list[tuple[str, str]]:
    return re.findall(r"^\d+\. `([\w/.]+):([\w.]+)`", WALKS[walk], re.MULTILINE)


def functions_of(file: str) -> dict[str, ast.FunctionDef]:
    """Functions by their qualified names."""
    found = {}
    for node in ast.parse((PACKAGE / file).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
            found |= {f"{node.name}.{each.name}": each for each in methods}
    return found


def names_in(function: ast.FunctionDef) -> set[str]:
    nodes = list(ast.walk(function))
    plain = {node.id for node in nodes if isinstance(node, ast.Name)}
    return plain | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def names_reached(file: str, function: str) -> set[str]:
    """Names that a function uses, by itself or through others of its file."""
    functions = functions_of(file)
    waiting, seen, reached = [function], {function}, set()
    while waiting:
        reached |= names_in(functions[waiting.pop()])
        found = {each for each in functions if each.rpartition(".")[2] in reached} - seen
        seen |= found
        waiting += found
    return reached


@pytest.mark.parametrize("walk", MOST_HOPS)
def test_walks_name_functions_that_exist(walk: str) -> None:
    assert len(steps(walk)) == len(WALKS[walk].splitlines())
    for file, function in steps(walk):
        assert function in functions_of(file), f"{file} has no {function}"


@pytest.mark.parametrize("walk", MOST_HOPS)
def test_functions_of_walks_are_called_by_those_above_them(walk: str) -> None:
    """A line that says how its function is reached needs no call."""
    reached: set[str] = set()
    for line, (file, function) in zip(WALKS[walk].splitlines(), steps(walk), strict=True):
        is_explained = not re.fullmatch(r"\d+\. `[^`]+`", line)
        is_called = function.rpartition(".")[2] in reached
        assert is_called or is_explained or not reached, line
        reached |= names_reached(file, function)


@pytest.mark.parametrize(("walk", "most"), MOST_HOPS.items())
def test_walks_are_short(walk: str, most: int) -> None:
    hops = len(steps(walk)) - 1
    assert hops <= most
    assert f"{walk}, from" in PAGE
    assert re.search(rf"{walk}, from .*\({hops} hops", PAGE)


def test_a_gradient_changes_folders_seldom() -> None:
    folders = [str(Path(file).parent) for file, _ in steps("A gradient")]
    changes = sum(one != other for one, other in pairwise(folders))
    assert changes <= 12
    assert f"{changes} changes of folder" in PAGE


def test_the_tree_lists_every_package() -> None:
    listed = set(re.findall(r"^  (\w+)/ ", PAGE, re.MULTILINE))
    present = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert listed | {"mpc"} == present
