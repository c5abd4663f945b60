"""First parameters of a model from a seed: the same bytes on every platform and numpy version.

Bits come from SHAKE-256 of the seed and the parameter's name, and become numbers by operations
that IEEE 754 defines exactly. A library's own generator would tie a model hash to its version.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from opfl_chain.models.errors import ModelError
from opfl_chain.models.parameters import Parameter, ParameterLayout

_DOMAIN = b"opfl.v1.initialisation"
_SEED_LIMIT = 1 << 64


def initial_parameters(layout: ParameterLayout, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    """Initial values of every parameter of the layout, trainable or not."""
    if not 0 <= seed < _SEED_LIMIT:
        raise ModelError(f"seed is {seed}, it must be an integer in [0, 2^64)")
    return {parameter.name: _initial(parameter, seed) for parameter in layout}


def _initial(parameter: Parameter, seed: int) -> npt.NDArray[np.float32]:
    # One stream a name: a parameter starts the same whichever others the model has.
    stream = hashlib.shake_256(_DOMAIN + seed.to_bytes(8, "little") + parameter.name.encode())
    words = np.frombuffer(stream.digest(8 * parameter.size), dtype="<u8")
    unit = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    values = (unit * 2.0 - 1.0) * parameter.bound
    return values.astype(np.float32).reshape(parameter.shape)
