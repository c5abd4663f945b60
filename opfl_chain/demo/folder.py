"""Where a demo leaves its files."""

from __future__ import annotations

import shutil
from pathlib import Path

from opfl_chain.localnet.errors import LocalnetError

_MARK = ".opfl-demo"
"""A file that says that a folder is a demo's, and can be replaced by the next one's."""


class FolderTaken(LocalnetError):
    """There is something in the folder that no demo left there."""


def fresh_folder(path: Path) -> Path:
    """An empty folder. What the last demo left there is beside it, under `NAME-before`."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        if not (path / _MARK).is_file():
            raise FolderTaken(
                f"{path} holds something that is not of a demo: name another folder with --out,"
                " or move it away"
            )
        before = path.with_name(f"{path.name}-before")
        if before.exists() and not (before / _MARK).is_file():
            raise FolderTaken(f"{before} is in the way, and is not of a demo: move it away")
        shutil.rmtree(before, ignore_errors=True)
        path.rename(before)
    path.mkdir(parents=True, exist_ok=True)
    (path / _MARK).touch()
    return path
