"""Arguments and results as frames carry them: JSON, with arrays beside it. No pickles.

`{"$": kind, ...}` stands for what JSON does not have.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

import numpy as np

from opfl_chain.mpc.errors import FrameInvalid, MpcError
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.frames import Buffer
from opfl_chain.mpc.session import RunResult
from opfl_chain.mpc.shares import Share, Storage
from opfl_chain.mpc.statistics import OperationCost, RunStatistics

_DEEPEST = 32
_KINDS_OF_ARRAYS = "biuf"
_SIMPLE_DTYPE = re.compile(r"[<>|][a-zA-Z][0-9]{0,2}")
"""numpy reads much more than that, and evaluates some of it."""


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
    try:
        return _decode(document, blobs)
    except MpcError:
        raise
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FrameInvalid(f"it has a value that is malformed: {error}") from error


def _decode(document: Any, blobs: tuple[Buffer, ...], depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise FrameInvalid(f"it has values that are nested more than {_DEEPEST} deep")
    if isinstance(document, list):
        return [_decode(each, blobs, depth + 1) for each in document]
    if not isinstance(document, dict):
        return document
    if "$" not in document:
        return {key: _decode(each, blobs, depth + 1) for key, each in document.items()}
    match document["$"]:
        case "bytes":
            return bytes(_blob(document, blobs))
        case "array":
            return _decode_array(document, blobs)
        case "share":
            return Share(
                _natural(document["rank"]),
                document["dtype"],
                _shape(document),
                Storage(document["storage"]),
                _decode_array(document["words"], blobs),
            )
        case "executable":
            return Executable.from_bytes(bytes(_blob(document, blobs)))
        case "statistics":
            return _decode_statistics(document)
        case "result":
            outputs = _decode(document["outputs"], blobs, depth + 1)
            if not isinstance(outputs, dict):
                raise FrameInvalid("it has a result without outputs")
            return RunResult(outputs, _decode_statistics(document["statistics"]))
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
    name = document["dtype"]
    if not _SIMPLE_DTYPE.fullmatch(name):
        raise FrameInvalid(f"it has an array of {name!r}")
    dtype = np.dtype(name)
    if dtype.kind not in _KINDS_OF_ARRAYS:
        raise FrameInvalid(f"it has an array of {dtype}")
    return np.frombuffer(_blob(document, blobs), dtype).reshape(_shape(document))


def _decode_statistics(document: dict[str, Any]) -> RunStatistics:
    facts = dict(document)
    facts.pop("$", None)
    facts["operations"] = tuple(OperationCost(**each) for each in facts["operations"])
    return RunStatistics(**facts)


def _blob(document: dict[str, Any], blobs: tuple[Buffer, ...]) -> Buffer:
    return blobs[_natural(document["blob"])]


def _shape(document: dict[str, Any]) -> tuple[int, ...]:
    return tuple(_natural(side) for side in document["shape"])


def _natural(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise FrameInvalid(f"it has {number!r} where a natural number must be")
    return number
