"""Files of a published data set on this machine, checked before they are used."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from pathlib import Path
from typing import IO

from opfl_chain.training.errors import DataFileInvalid
from opfl_chain.training.published import IdxFile, PublishedDataset

CACHE_VARIABLE = "OPFL_DATA_DIR"


def cache_folder() -> Path:
    """Where fetched data sets are kept: $OPFL_DATA_DIR, or else the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opfl_chain" / "data"


def find_complete(dataset: PublishedDataset, folder: Path) -> list[Path] | None:
    """The paths of all files of a data set in a folder, gzipped or not, if none is missing."""
    for place in (*(folder / subfolder for subfolder in dataset.subfolders), folder):
        paths = [find_file(file, place) for file in dataset.files]
        found = [path for path in paths if path is not None]
        if len(found) == len(dataset.files):
            return found
    return None


def find_file(file: IdxFile, folder: Path) -> Path | None:
    candidates = (folder / file.name, folder / f"{file.name}.gz")
    return next((path for path in candidates if path.is_file()), None)


def read_checked(file: IdxFile, path: Path) -> bytes:
    """The uncompressed content of a file, if it is the published one."""
    try:
        with path.open("rb") as stream:
            return uncompressed(file, stream, path)
    except OSError as error:
        raise DataFileInvalid(path, f"cannot be read: {error.strerror or error}") from error


def uncompressed(file: IdxFile, stream: IO[bytes], origin: Path | str) -> bytes:
    """The content of a stream, gunzipped if it is gzipped; refused unless it is the published."""
    start = stream.read(2)
    stream.seek(0)
    try:
        # One byte more than expected, however much the file claims to unpack to.
        if start == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=stream) as unpacked:
                content = unpacked.read(file.size + 1)
        else:
            content = stream.read(file.size + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileInvalid(
            origin, f"is a damaged gzip file ({error}). Delete it and fetch it again."
        ) from error
    require_published(file, content, origin)
    return content


def require_published(file: IdxFile, content: bytes, origin: Path | str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if len(content) != file.size or digest != file.sha256:
        more = "or more " if len(content) > file.size else ""
        raise DataFileInvalid(
            origin,
            f"is not the published file: uncompressed it has {len(content):,} {more}bytes and"
            f" sha256 {digest}, and should have {file.size:,} and {file.sha256}. Delete it and"
            " fetch it again.",
        )


def store(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
