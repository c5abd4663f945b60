"""Nothing in the package serves the tests alone."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
USERS = ("opfl_chain", "scripts", "examples", "docs")
FOUND_BY_FILE = "adversaries/gradients"
"""Its attacks are registered by the file that they stand in."""

CALLED_BY_LIBRARIES = {
    "list_commands",
    "get_command",
    "handle_expect_100",
    "process_request",
    "handle_error",
}
KEPT = {
    "from_compressed": "the published vectors of BLS are compressed",
    "send_many": "the sender as a library: several intents at once",
}


def words() -> Counter[str]:
    found: Counter[str] = Counter()
    for folder in USERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md") and "results" not in path.parts:
                found.update(re.findall(r"\w+", path.read_text()))
    return found


def definitions(path: Path) -> list[str]:
    """Public functions, classes and methods."""
    body = ast.parse(path.read_text()).body
    nested = [each for node in body if isinstance(node, ast.ClassDef) for each in node.body]
    names = [n.name for n in (*body, *nested) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


def test_every_public_name_is_used_outside_the_tests() -> None:
    used = words()
    package = ROOT / "opfl_chain"
    unused = {
        name
        for path in package.rglob("*.py")
        if "bindings" not in path.parts and FOUND_BY_FILE not in path.as_posix()
        for name in definitions(path)
        if used[name] == 1
    }
    assert unused == CALLED_BY_LIBRARIES | KEPT.keys()
