"""Random numbers from a seed, independent of library versions.

Like initial parameters, they come from SHAKE-256 of a domain, the seed and the purpose.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from opfl_chain.learning.errors import ModelError
from opfl_chain.learning.layout import Parameter, ParameterLayout

_BITS_DOMAIN = b"opfl.v1.data"
_PARAMETERS_DOMAIN = b"opfl.v1.initialisation"
_SEED_LIMIT = 1 << 64


def random_bytes(count: int, purpose: str, *numbers: int) -> NDArray[np.uint8]:
    """Return random bytes, a separate sequence for each purpose and numbers (seed first)."""
    label = ",".join((purpose, *(str(int(number)) for number in numbers))).encode()
    return np.frombuffer(hashlib.shake_256(_BITS_DOMAIN + label).digest(count), np.uint8)


def random_permutation(length: int, purpose: str, *numbers: int) -> NDArray[np.int64]:
    """Return 0, 1, ..., length - 1 in random order, by sorting as many random words."""
    words = random_bytes(8 * length, purpose, *numbers).view("<u8")
    return np.argsort(words, kind="stable").astype(np.int64)


def initial_parameters(layout: ParameterLayout, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    """Return the initial values of every parameter of the layout, trainable or not."""
    if not 0 <= seed < _SEED_LIMIT:
        raise ModelError(f"seed is {seed}, it must be an integer in [0, 2^64)")
    return {parameter.name: _initial(parameter, seed) for parameter in layout}


def _initial(parameter: Parameter, seed: int) -> npt.NDArray[np.float32]:
    # One stream per name: a parameter's values do not depend on the model's other parameters.
    stream = hashlib.shake_256(
        _PARAMETERS_DOMAIN + seed.to_bytes(8, "little") + parameter.name.encode()
    )
    words = np.frombuffer(stream.digest(8 * parameter.size), dtype="<u8")
    unit = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    values = (unit * 2.0 - 1.0) * parameter.bound
    return values.astype(np.float32).reshape(parameter.shape)
