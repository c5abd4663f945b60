"""The canonical encoding of the input of one training step."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opfl_chain.protocol.abi import abi_encode, uint, word
from opfl_chain.protocol.errors import EncodingError
from opfl_chain.protocol.hashing import MerkleTree, double_keccak256, verify_proof
from opfl_chain.protocol.ring import WORD_LIMIT, FixedPoint, Shape, Words


@dataclass(frozen=True)
class InputFormat:
    """The format of a step's input. Both shapes include the batch."""

    feature_shape: Shape
    label_shape: Shape
    classes: int
    fraction_bits: int
    feature_range: tuple[float, float] = (-math.inf, math.inf)
    """Features outside this range are refused and fail an audit."""

    @property
    def feature_bounds(self) -> tuple[int, int]:
        """The smallest and the largest word of a feature, or of the ring without a range."""
        low, high = (
            bound * (1 << self.fraction_bits) if math.isfinite(bound) else bound
            for bound in self.feature_range
        )
        return (
            math.floor(low) if math.isfinite(low) else -WORD_LIMIT,
            math.ceil(high) if math.isfinite(high) else WORD_LIMIT,
        )

    @property
    def feature_words(self) -> int:
        """The number of words of the features, which come first."""
        return math.prod(self.feature_shape)

    @property
    def target_words(self) -> int:
        """The number of words of the one-hot targets, which follow the features."""
        return math.prod(self.label_shape) * self.classes

    @property
    def words(self) -> int:
        """The number of words of an encoded input."""
        return self.feature_words + self.target_words

    def encode(self, features: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Words:
        """Encode features in fixed point and labels as one-hot rows of 0 and 1."""
        self._check_features(features)
        self._check_labels(labels)
        fixed_point = FixedPoint(self.fraction_bits)
        words = fixed_point.encode_array("features", features)
        self._check_range(features, words)
        one_hot = labels.ravel()[:, np.newaxis] == np.arange(self.classes)
        targets = one_hot.ravel() * np.int64(fixed_point.words_per_unit)
        return np.concatenate([words, targets])

    def _check_features(self, features: npt.NDArray[Any]) -> None:
        if features.dtype != np.float32:
            raise EncodingError(f"features have dtype {features.dtype}, they must be float32")
        if features.shape != self.feature_shape:
            raise EncodingError(
                f"features have shape {features.shape}, the policy says {self.feature_shape}"
            )

    def _check_range(self, features: npt.NDArray[Any], words: Words) -> None:
        low, high = self.feature_bounds
        outside = (words < low) | (words > high)
        if outside.any():
            index = np.unravel_index(int(outside.argmax()), features.shape)
            raise EncodingError(
                f"features[{', '.join(map(str, index))}] is {features[index]:g}, an example"
                f" normalised as the policy says is in [{self.feature_range[0]:g},"
                f" {self.feature_range[1]:g}]"
            )

    def _check_labels(self, labels: npt.NDArray[Any]) -> None:
        if labels.dtype.kind not in "iu":
            raise EncodingError(f"labels have dtype {labels.dtype}, they must be integers")
        if labels.shape != self.label_shape:
            raise EncodingError(
                f"labels have shape {labels.shape}, the policy says {self.label_shape}"
            )
        wrong = np.argwhere((labels < 0) | (labels >= self.classes))
        if wrong.size:
            index = tuple(int(i) for i in wrong[0])
            raise EncodingError(
                f"labels[{', '.join(map(str, index))}] is {labels[index]},"
                f" it must be in [0, {self.classes})"
            )


def dataset_leaf(t: int, commitment: bytes) -> bytes:
    """Bind an input commitment to the round ``t`` in which the input is used."""
    return double_keccak256(abi_encode(uint("t", t, 256), word("commitment", commitment)))


def dataset_tree(commitments: Iterable[bytes]) -> MerkleTree:
    """Build the tree over the input commitments of rounds 0, 1, 2, ..."""
    return MerkleTree.of(dataset_leaf(t, commitment) for t, commitment in enumerate(commitments))


def is_input_of_round(root: bytes, t: int, commitment: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether the data set of this root has the commitment at exactly round ``t``."""
    return verify_proof(proof, root, dataset_leaf(t, commitment))
