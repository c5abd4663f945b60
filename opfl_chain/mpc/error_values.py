"""Errors as frames carry them, so that a member raises what its SPU process raised."""

from __future__ import annotations

from typing import Any

from opfl_chain.mpc import errors
from opfl_chain.mpc.errors import FrameInvalid, MpcError, ProgramFailed, SessionError

_TYPES = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, MpcError)
}


def encode_error(error: MpcError) -> dict[str, Any]:
    return {"type": type(error).__name__, "message": str(error), "state": vars(error)}


def decode_error(document: Any) -> MpcError:
    match document:
        case {"type": str(name), "message": str(message), "state": dict(state)}:
            kind = _TYPES.get(name, SessionError)
            error = kind.__new__(kind)  # not __init__, which makes the message that is here already
            error.args = (message,)
            vars(error).update(state)
            return error
    raise FrameInvalid("it has an error that is malformed")


def as_mpc_error(error: BaseException, program: str) -> MpcError:
    """The error itself if it is one of ours."""
    if isinstance(error, MpcError):
        return error
    return ProgramFailed(program, f"{type(error).__name__}: {error}")
