"""SPU's native library, without the Python package around it.

`import spu` imports jax: a second and 120 MB that a party's process has no use for. The library is
entered in `sys.modules` under its usual name, so `from spu import libspu` finds the very same one.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_NAME = "spu.libspu"


def _load() -> ModuleType:
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    package = importlib.util.find_spec("spu")
    if package is None or package.origin is None:
        raise ImportError("SPU is not installed: pip install spu==0.9.5, with Python 3.11")
    path = Path(package.origin).with_name("libspu.so")
    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(path))
    spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    loader.exec_module(module)
    return module


libspu: Any = _load()


def reason_of(error: RuntimeError) -> str:
    """What libspu says in an error, without its stack trace."""
    return (
        re.split(r"stacktrace:", str(error), flags=re.IGNORECASE)[0].removeprefix("what:").strip()
    )
