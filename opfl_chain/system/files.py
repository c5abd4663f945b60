"""Atomic file writes: no reader sees, and no crash leaves, half a file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, text: str, *, mode: int = 0o644, replace: bool = True) -> None:
    """Write through a temporary file beside `path`. Without `replace` an existing file stays.

    Raises FileExistsError in that case.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)  # unlike a rename, refuses to replace what is there
    finally:
        temporary.unlink(missing_ok=True)
