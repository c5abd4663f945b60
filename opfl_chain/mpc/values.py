"""Arguments and results as frames carry them: JSON, with arrays beside it. No pickles.

`{"$": kind, ...}` stands for what JSON does not have.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from opfl_chain.mpc.errors import FrameInvalid
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.frames import Buffer
from opfl_chain.mpc.session import RunResult
from opfl_chain.mpc.shares import Share, Storage
from opfl_chain.mpc.statistics import OperationCost, RunStatistics

_KINDS_OF_ARRAYS = "biuf"


def encode_value(value: Any, blobs: list[Buffer]) -> Any:
    """The JSON form of a value; what is large is appended to `blobs`."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return encode_value(value.item(), blobs)
        case list() | tuple():
            return [encode_value(each, blobs) for each in value]
        case dict():
            if not all(isinstance(key, str) for key in value) or "$" in value:
                raise TypeError("keys of a dictionary must be strings other than '$'")
            return {key: encode_value(each, blobs) for key, each in value.items()}
        case bytes() | bytearray():
            return {"$": "bytes", "blob": _append(blobs, value)}
        case np.ndarray():
            return _encode_array(value, blobs)
        case Share():
            facts = {"rank": value.rank, "dtype": value.dtype, "storage": value.storage.name}
            shape, words = list(value.shape), _encode_array(value.words, blobs)
            return {"$": "share", **facts, "shape": shape, "words": words}
        case Executable():
            return {"$": "executable", "blob": _append(blobs, value.to_bytes())}
        case RunStatistics():
            return {"$": "statistics", **asdict(value)}
        case RunResult():
            outputs = encode_value(value.outputs, blobs)
            return {
                "$": "result",
                "outputs": outputs,
                "statistics": encode_value(value.statistics, blobs),
            }
        case _:
            raise TypeError(
                f"{type(value).__name__} cannot be sent to another process. Use numbers, strings,"
                " bytes, arrays, shares, executables, and lists and dictionaries of them."
            )


def decode_value(document: Any, blobs: tuple[Buffer, ...]) -> Any:
    """The value of which this is the JSON form."""
    if isinstance(document, list):
        return [decode_value(each, blobs) for each in document]
    if not isinstance(document, dict):
        return document
    match document.get("$"):
        case None:
            return {key: decode_value(each, blobs) for key, each in document.items()}
        case "bytes":
            return bytes(blobs[document["blob"]])
        case "array":
            return _decode_array(document, blobs)
        case "share":
            return Share(
                document["rank"],
                document["dtype"],
                tuple(document["shape"]),
                Storage(document["storage"]),
                _decode_array(document["words"], blobs),
            )
        case "executable":
            return Executable.from_bytes(bytes(blobs[document["blob"]]))
        case "statistics":
            facts = {key: value for key, value in document.items() if key != "$"}
            facts["operations"] = tuple(OperationCost(**each) for each in facts["operations"])
            return RunStatistics(**facts)
        case "result":
            outputs = decode_value(document["outputs"], blobs)
            return RunResult(outputs, decode_value(document["statistics"], blobs))
        case kind:
            raise FrameInvalid(f"it has a value of kind {kind!r}")


def _append(blobs: list[Buffer], data: Buffer) -> int:
    blobs.append(data)
    return len(blobs) - 1


def _encode_array(array: np.ndarray[Any, Any], blobs: list[Buffer]) -> dict[str, Any]:
    if array.dtype.kind not in _KINDS_OF_ARRAYS:
        raise TypeError(f"an array of {array.dtype} cannot be sent: numbers and booleans only")
    # Not `.data`, which an empty array does not have in the form of bytes.
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return {
        "$": "array",
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "blob": _append(blobs, data.data if data.size else b""),
    }


def _decode_array(document: dict[str, Any], blobs: tuple[Buffer, ...]) -> np.ndarray[Any, Any]:
    dtype = np.dtype(document["dtype"])
    if dtype.kind not in _KINDS_OF_ARRAYS:
        raise FrameInvalid(f"it has an array of {dtype}")
    return np.frombuffer(blobs[document["blob"]], dtype).reshape(document["shape"])
