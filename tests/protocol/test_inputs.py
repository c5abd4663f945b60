import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opfl_chain.protocol.errors import EncodingError
from opfl_chain.protocol.inputs import InputFormat

FORMAT = InputFormat(feature_shape=(2, 3), label_shape=(2,), classes=4, fraction_bits=8)
FEATURES = np.zeros((2, 3), np.float32)
LABELS = np.array([0, 3])

features = hnp.arrays(np.float32, (2, 3), elements=st.floats(-100, 100, width=32))
labels = hnp.arrays(np.int64, (2,), elements=st.integers(0, 3))


@given(features, labels)
def test_encoding_holds_features_then_one_hot_rows(features, labels):
    words = FORMAT.encode(features, labels)
    assert (words.dtype, words.shape) == (np.dtype("<i8"), (FORMAT.words,))
    decoded = words[: FORMAT.feature_words].reshape(2, 3) / 2**8
    assert np.abs(decoded - features).max() <= 2**-9
    rows = words[FORMAT.feature_words :].reshape(2, 4)
    assert rows.argmax(axis=1).tolist() == labels.tolist()
    assert sorted(rows[0]) == sorted(rows[1]) == [0, 0, 0, 2**8]


def test_labels_may_be_many_for_one_example():
    tokens = InputFormat(feature_shape=(1, 2, 5), label_shape=(1, 2), classes=3, fraction_bits=0)
    words = tokens.encode(np.ones((1, 2, 5), np.float32), np.array([[2, 0]]))
    assert words.tolist() == [1] * 10 + [0, 0, 1, 1, 0, 0]


def test_width_of_labels_does_not_matter():
    expected = FORMAT.encode(FEATURES, LABELS).tobytes()
    for dtype in (np.uint8, np.int32, np.uint64):
        assert FORMAT.encode(FEATURES, LABELS.astype(dtype)).tobytes() == expected


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (FEATURES[:1], LABELS, r"features have shape \(1, 3\), the policy says \(2, 3\)"),
        (FEATURES.ravel(), LABELS, r"features have shape \(6,\)"),
        (FEATURES.astype(np.float64), LABELS, "features have dtype float64"),
        (FEATURES + np.float32("nan"), LABELS, r"features\[0, 0\] is nan"),
        (FEATURES + np.float32(1e20), LABELS, r"features\[0, 0\] is 1e\+20"),
        (FEATURES, LABELS[:1], r"labels have shape \(1,\), the policy says \(2,\)"),
        (FEATURES, LABELS.astype(np.float32), "labels have dtype float32"),
        (FEATURES, LABELS.astype(bool), "labels have dtype bool"),
        (FEATURES, np.array([0, 4]), r"labels\[1\] is 4, it must be in \[0, 4\)"),
        (FEATURES, np.array([-1, 4]), r"labels\[0\] is -1"),
        (FEATURES, np.array([0, 2**63], np.uint64), r"labels\[1\] is 9223372036854775808"),
    ],
)
def test_malformed_input_is_refused(features, labels, message):
    with pytest.raises(EncodingError, match=message):
        FORMAT.encode(features, labels)
