"""File writes that no crash leaves half done: of whole files, and of lines."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

_CHUNK_BYTES: Final = 1 << 16


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


def append_line(path: Path, line: str) -> None:
    """Append a line, which is on disk when this returns.

    The part of a line that a crash left at the end of the file is removed first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    with os.fdopen(descriptor, "r+b") as file:
        file.truncate(_end_of_lines(file))
        file.seek(0, os.SEEK_END)
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name of a new file
    finally:
        os.close(folder)


def _end_of_lines(file: BinaryIO) -> int:
    """Return the place after the last end of a line."""
    at = file.seek(0, os.SEEK_END)
    while at:
        start = max(0, at - _CHUNK_BYTES)
        file.seek(start)
        if (found := file.read(at - start).rfind(b"\n")) >= 0:
            return start + found + 1
        at = start
    return 0
