"""The test split of a data set in one .npz, for machines that have no more than that."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from opfl_chain.training.data_files import require_published
from opfl_chain.training.errors import DataFileInvalid
from opfl_chain.training.examples import Dataset, Examples
from opfl_chain.training.idx import write_idx
from opfl_chain.training.published import PublishedDataset

TRAIN_PART = 0.8


def read_excerpt(published: PublishedDataset, path: Path) -> Dataset:
    """The published test split, its first 80% to train on and the rest to test with.

    The name says so (`fashion-mnist-test-split`), because accuracies are not those of the full set.
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
