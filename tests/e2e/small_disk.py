"""A disk for one daemon that can be filled: a file system of its own where one may be mounted."""

import contextlib
import resource
import sqlite3
import subprocess
from pathlib import Path

SIZE = 256 << 20
_CHUNK = 1 << 20


class SmallDisk:
    """The daemon gets a file size limit instead if mounting is not allowed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
        try:
            self.mounted = subprocess.run(command, capture_output=True).returncode == 0
        except FileNotFoundError:
            self.mounted = False

    def fill(self, pid: int) -> None:
        if not self.mounted:
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
            return
        self._empty_log()
        with contextlib.suppress(OSError), self._ballast.open("wb", buffering=0) as file:
            for size in (_CHUNK, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def _empty_log(self) -> None:
        """Truncate the write-ahead log of deliveries, or one would fit into its old pages."""
        with contextlib.closing(sqlite3.connect(self._folder / "state.sqlite", timeout=60)) as db:
            (busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert not busy, "the member's state is in use"

    def free(self, pid: int) -> None:
        if self.mounted:
            self._ballast.unlink()
        else:
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)
            self.mounted = False

    @property
    def _ballast(self) -> Path:
        return self._folder / "ballast"
