"""Every `.tree` in tests/contracts lists exactly the tests of the Solidity file beside it.

A branch `function / when condition / it outcome (errors and events)` is the test
`test_Function_WhenCondition_Outcome`; a branch `fuzz` makes it `testFuzz_Function_Outcome`. A
sentence under `invariant` always holds.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CONTRACTS = Path(__file__).parent / "contracts"
TREES = sorted(CONTRACTS.rglob("*.tree"))


def camel(phrase: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", phrase.replace("'", ""))
    return "".join(word[0].upper() + word[1:] for word in words)


def planned_in(tree: str) -> Iterator[str]:
    path: list[str] = []
    for line in tree.splitlines()[1:]:
        marks, text = re.fullmatch(r"([│├└─ ]*)(.*)", line).groups()
        path[len(marks) // 4 - 1 :] = [re.sub(r" \(.*\)$", "", text)]
        if path[0] == "invariant" and len(path) == 2:
            yield f"invariant_{camel(text)}"
        elif text.startswith("it "):
            function, *conditions, outcome = path
            prefix = "testFuzz" if conditions == ["fuzz"] else "test"
            parts = [function, *(c for c in conditions if c != "fuzz"), outcome[len("it ") :]]
            yield "_".join([prefix, *map(camel, parts)])


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.stem)
def test_tree_lists_the_tests_of_its_contract(tree: Path) -> None:
    planned = list(planned_in(tree.read_text("utf-8")))
    solidity = tree.with_name(f"{tree.stem}.t.sol").read_text("utf-8")
    written = re.findall(r"function (test\w+|invariant_\w+)\(", solidity)
    assert planned
    assert sorted(planned) == sorted(written)


def test_every_contract_of_tests_has_a_tree() -> None:
    tested = {path.name.removesuffix(".t.sol") for path in CONTRACTS.rglob("*.t.sol")}
    assert tested == {tree.stem for tree in TREES}
