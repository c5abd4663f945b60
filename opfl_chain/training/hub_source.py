"""Data sets from the hub that publishes them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import requests

from opfl_chain.training.data_files import find_file, store, uncompressed
from opfl_chain.training.errors import SourceFailed
from opfl_chain.training.published import PublishedDataset

Progress = Callable[[str, int, int | None], None]
"""Called with the file's name, bytes so far, and bytes in all where they are known."""

_CONNECT_SECONDS, _SILENCE_SECONDS = 10, 60
_CHUNK = 1 << 16
_GZIP_OVERHEAD = 1 << 12


def fetch_from_hub(dataset: PublishedDataset, folder: Path, progress: Progress) -> None:
    """Download the files that the folder lacks. A file appears there only whole and checked."""
    with requests.Session() as session:
        for file in dataset.files:
            if find_file(file, folder) is None:
                url = f"{dataset.hub}{file.name}.gz"
                limit = file.size + _GZIP_OVERHEAD
                compressed = _download(session, url, file.name, limit=limit, progress=progress)
                store(folder / file.name, uncompressed(file, io.BytesIO(compressed), url))


def _download(
    session: requests.Session, url: str, name: str, *, limit: int, progress: Progress
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
        return "no answer in time"
    return "is there a network?" if isinstance(error, requests.ConnectionError) else str(error)
