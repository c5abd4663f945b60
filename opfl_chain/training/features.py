"""Published images as the input of a model, by the data rules of a policy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from opfl_chain.protocol.policy import DataRules
from opfl_chain.training.errors import PolicyUnusable


def features_of(images: NDArray[np.uint8], rules: DataRules) -> NDArray[np.float32]:
    """(byte / 255 - mean) / std for each channel, in float64 and rounded to float32 once."""
    if images.shape[1:] != rules.input_shape:
        raise PolicyUnusable(
            f"images have shape {images.shape[1:]}, the policy says {rules.input_shape}"
        )
    if len(rules.mean) not in (1, images.shape[-1]):
        raise PolicyUnusable(
            f"the policy has {len(rules.mean)} means, images have {images.shape[-1]} channels:"
            " give one mean, or one for each channel"
        )
    if not all(map(math.isfinite, (*rules.mean, *rules.std))):
        raise PolicyUnusable(f"mean {rules.mean} or deviation {rules.std} is not finite")
    features = (images / 255.0 - np.array(rules.mean)) / np.array(rules.std)
    rounded: NDArray[np.float32] = features.astype(np.float32)
    return rounded
