"""Values between a member and its SPU process: JSON with arrays beside it. No pickles.

Listed frozen dataclasses travel by the names of their fields. Everything that arrives is checked
against the annotations of the function that takes it.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import numpy as np

from opfl_chain.mpc.session import errors
from opfl_chain.mpc.session.errors import FrameInvalid, MpcError, ProgramFailed, SessionError
from opfl_chain.mpc.session.executable import Executable
from opfl_chain.mpc.session.messages import Buffer
from opfl_chain.protocol.errors import ProtocolError

_RECORDS: Final = {
    "opfl_chain.mpc.audit.checks": ("InputRules",),
    "opfl_chain.mpc.audit.contribution": ("TreeOpening",),
    "opfl_chain.mpc.audit.judge": ("Finding",),
    "opfl_chain.mpc.session.party_config": ("PartyConfig",),
    "opfl_chain.mpc.session.requests": ("Call", "Join", "Leave", "Left", "Warm"),
    "opfl_chain.mpc.session.session": ("RunResult",),
    "opfl_chain.mpc.session.shares": ("Share", "Storage"),
    "opfl_chain.mpc.session.statistics": ("OperationCost", "RunStatistics"),
    "opfl_chain.protocol.advice": ("AdviceFormat",),
    "opfl_chain.rules.evidence": ("Evidence", "Forms", "ReplayOutputs"),
    "opfl_chain.transport.tls": ("TlsFiles",),
}
"""Dataclasses that may be sent, by module. A module is loaded when its first record arrives."""
_MODULES: Final = {name: module for module, names in _RECORDS.items() for name in names}
_MAX_DEPTH = 32
_KINDS_OF_ARRAYS = "biuf"
_SIMPLE_DTYPE = re.compile(r"[<>|][a-zA-Z][0-9]{0,2}")
"""Accepted dtypes: numpy parses much more, and evaluates some of it."""
_TYPES = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, MpcError)
}


@cache
def hints_of(annotated: Any) -> dict[str, Any]:
    """Return the annotations of a dataclass or a function."""
    return get_type_hints(annotated)


def typed_arguments(procedure: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a procedure's arguments as its annotations demand, or raise FrameInvalid."""
    hints = hints_of(procedure)
    return {
        name: conform(value, hints.get(name, Any), f"argument {name!r}")
        for name, value in arguments.items()
    }


def typed_result(procedure: Callable[..., Any], result: Any) -> Any:
    """Return a procedure's result as its annotation demands, or raise FrameInvalid."""
    return conform(result, hints_of(procedure).get("return", Any), "the result")


def conform(value: Any, hint: Any, where: str) -> Any:
    """Return a value as an annotation demands; FrameInvalid names the part that cannot be."""
    origin, of = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _conform_to_one_of(value, hint, where)
    if origin is tuple and isinstance(value, list | tuple):
        return _conform_to_tuple(value, hint, where)
    if origin in (list, Sequence) and isinstance(value, list | tuple):
        return [conform(each, of[0], f"{where}[{at}]") for at, each in enumerate(value)]
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {key: conform(each, of[1], f"{where}[{key!r}]") for key, each in value.items()}
    if origin is np.ndarray and isinstance(value, np.ndarray):
        (number,) = get_args(of[1])
        if number is Any or value.dtype == np.dtype(number):
            return value
    if isinstance(hint, type) and origin is None:
        return _conform_to_class(value, hint, where)
    raise _mismatch(value, hint, where)


def _conform_to_one_of(value: Any, hint: Any, where: str) -> Any:
    for each in get_args(hint):
        try:
            return conform(value, each, where)
        except FrameInvalid:
            continue
    raise _mismatch(value, hint, where)


def _conform_to_tuple(value: Sequence[Any], hint: Any, where: str) -> tuple[Any, ...]:
    kinds = get_args(hint)
    if kinds[1:] == (...,):
        return tuple(conform(each, kinds[0], f"{where}[{at}]") for at, each in enumerate(value))
    if len(kinds) != len(value):
        raise FrameInvalid(f"{where} has {len(value)} parts, expected {len(kinds)}")
    parts = zip(value, kinds, strict=True)
    found = tuple(conform(part, kind, f"{where}[{at}]") for at, (part, kind) in enumerate(parts))
    shapes = [part.shape for part in found if isinstance(part, np.ndarray)]
    if len(set(shapes)) > 1:  # arrays side by side are components of one secret
        raise FrameInvalid(f"{where} has components of different shapes: {shapes}")
    return found


def _conform_to_class(value: Any, kind: type[Any], where: str) -> Any:
    if issubclass(kind, Enum):
        for member in kind:
            if type(value) is type(member.value) and value == member.value:
                return member
        raise FrameInvalid(f"{where} is {value!r:.60}, not a {kind.__name__}")
    if issubclass(kind, Path) and isinstance(value, str):
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if isinstance(value, bool) and kind is not bool:
        raise _mismatch(value, kind, where)
    if isinstance(value, kind):
        return value
    raise _mismatch(value, kind, where)


def _mismatch(value: Any, hint: Any, where: str) -> FrameInvalid:
    given = f"array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
    expected = hint.__name__ if isinstance(hint, type) and not get_args(hint) else hint
    return FrameInvalid(f"{where} is of type {given}, expected {expected}")


def encode_value(value: Any, blobs: list[Buffer]) -> Any:
    """Return the JSON form of a value; large parts are appended to `blobs`."""
    match value:
        case Enum():
            return encode_value(value.value, blobs)
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return encode_value(value.item(), blobs)
        case Path():
            return str(value)
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
        case Executable():
            return {"$": "executable", "blob": _append(blobs, value.to_bytes())}
    name = type(value).__name__
    if name in _MODULES and isinstance(value, _record(name)):
        return {"$": name} | {
            each.name: encode_value(getattr(value, each.name), blobs) for each in fields(value)
        }
    from opfl_chain.rules.boundary import Boundary  # late: it loads pydantic

    if isinstance(value, Boundary):
        return {"$": "boundary", "blob": _append(blobs, value.canonical_json)}
    raise TypeError(
        f"{name} cannot be sent to another process. Use numbers, strings, bytes, arrays,"
        " executables, boundaries, records of the codec, and lists and dictionaries of them."
    )


def decode_value(document: Any, blobs: tuple[Buffer, ...]) -> Any:
    """Return the value of a JSON form."""
    try:
        return _decode(document, blobs)
    except MpcError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
        ProtocolError,
    ) as error:
        raise FrameInvalid(f"the message has a malformed value: {error}") from error


def _decode(document: Any, blobs: tuple[Buffer, ...], depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        raise FrameInvalid(f"the message has values nested more than {_MAX_DEPTH} deep")
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
        case "executable":
            return Executable.from_bytes(bytes(_blob(document, blobs)))
        case "boundary":
            from opfl_chain.rules.registry import boundary_from_json  # late: it loads pydantic

            return boundary_from_json(bytes(_blob(document, blobs)))
        case str(name) if name in _MODULES:
            parts = {key: each for key, each in document.items() if key != "$"}
            return _make_record(name, _decode(parts, blobs, depth + 1))
        case kind:
            raise FrameInvalid(f"the message has a value of unknown kind {kind!r}")


@cache
def _record(name: str) -> type[Any]:
    record: type[Any] = getattr(import_module(_MODULES[name]), name)
    return record


def _make_record(name: str, given: dict[str, Any]) -> Any:
    record: Any = _record(name)
    hints = hints_of(record)
    declared = {each.name for each in fields(record)}
    if missing := declared - given.keys():
        raise FrameInvalid(f"the message has a {name} without {', '.join(sorted(missing))}")
    if unknown := given.keys() - declared:
        raise FrameInvalid(f"the message has a {name} with unknown {', '.join(sorted(unknown))}")
    typed = {key: conform(given[key], hints[key], f"{name}.{key}") for key in declared}
    try:
        return record(**typed)
    except MpcError:
        raise
    except Exception as error:
        raise FrameInvalid(f"the message has an invalid {name}: {error}") from error


def _append(blobs: list[Buffer], data: Buffer) -> int:
    blobs.append(data)
    return len(blobs) - 1


def _encode_array(array: np.ndarray[Any, Any], blobs: list[Buffer]) -> dict[str, Any]:
    if array.dtype.kind not in _KINDS_OF_ARRAYS:
        raise TypeError(f"an array of {array.dtype} cannot be sent: numbers and booleans only")
    # Not `.data` of the array itself: that of an empty one cannot be cast to bytes.
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
        raise FrameInvalid(f"the message has an array of {name!r}, expected numbers or booleans")
    dtype = np.dtype(name)
    if dtype.kind not in _KINDS_OF_ARRAYS:
        raise FrameInvalid(f"the message has an array of {dtype}, expected numbers or booleans")
    return np.frombuffer(_blob(document, blobs), dtype).reshape(_shape(document))


def _blob(document: dict[str, Any], blobs: tuple[Buffer, ...]) -> Buffer:
    return blobs[_natural(document["blob"])]


def _shape(document: dict[str, Any]) -> tuple[int, ...]:
    return tuple(_natural(side) for side in document["shape"])


def _natural(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise FrameInvalid(f"the message has {number!r} instead of a natural number")
    return number


def encode_error(error: MpcError) -> dict[str, Any]:
    return {"type": type(error).__name__, "message": str(error), "state": vars(error)}


def decode_error(document: Any) -> MpcError:
    match document:
        case {"type": str(name), "message": str(message), "state": dict(state)}:
            kind = _TYPES.get(name, SessionError)
            error = kind.__new__(kind)  # not __init__, which would compose the message again
            error.args = (message,)
            vars(error).update(state)
            return error
    raise FrameInvalid("the message has a malformed error")


def as_mpc_error(error: BaseException, program: str) -> MpcError:
    """Return the error itself if it is an `MpcError`, else a `ProgramFailed` that names it."""
    if isinstance(error, MpcError):
        return error
    return ProgramFailed(program, f"{type(error).__name__}: {error}")
