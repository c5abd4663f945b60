"""Loader of the executable definitions of docs/SPEC.md."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

SPEC = Path(__file__).resolve().parents[2] / "docs" / "SPEC.md"


def load_spec(path: Path = SPEC) -> ModuleType:
    """Run the Python blocks of SPEC.md, in order, as one module."""
    text = path.read_text(encoding="utf-8")
    spec = ModuleType("spec")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start(1))
        code = compile("\n" * line + match[1], str(path), "exec")  # errors name the line in SPEC.md
        exec(code, spec.__dict__)
    return spec


spec = load_spec()


def is_refused(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        function(*arguments)
    except AssertionError:
        return True
    return False
