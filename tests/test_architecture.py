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


def functions_of(path: Path) -> set[str]:
    """Functions by their qualified names."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
            found |= {f"{node.name}.{each.name}" for each in methods}
    return found


@pytest.mark.parametrize("walk", MOST_HOPS)
def test_walks_name_functions_that_exist(walk: str) -> None:
    assert len(steps(walk)) == len(WALKS[walk].splitlines())
    for file, function in steps(walk):
        assert function in functions_of(PACKAGE / file), f"{file} has no {function}"


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
