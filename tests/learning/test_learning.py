"""A client's data, local steps and updates together make a model learn."""

import hashlib

import numpy as np
import pytest
from training_support import policy, trained

from opfl_chain.learning.data.datasets import synthetic_dataset
from opfl_chain.learning.data.examples import Examples, features_of
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.errors import BatchInvalid, PolicyUnusable
from opfl_chain.learning.lenet import LENET_61706
from opfl_chain.learning.local_step import evaluate
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.protocol.aggregate import mean_gradient, weights_hash
from opfl_chain.protocol.errors import AggregateError
from opfl_chain.protocol.ring import FixedPoint


def test_lenet_learns_the_synthetic_set_in_250_steps() -> None:
    rules, dataset = policy(batch_size=4, learning_rate=0.005), synthetic_dataset()
    start = initial_parameters(LENET_61706.layout, rules.seeds.model)
    before = evaluate(LENET_61706, start, dataset.test, rules.data)
    after = evaluate(LENET_61706, trained(rules, dataset.train, 250), dataset.test, rules.data)
    assert before.accuracy < 0.3
    assert after.accuracy > 0.8
    assert after.loss < before.loss / 2
    assert after.examples == 500


def test_evaluation_does_not_depend_on_the_batches() -> None:
    dataset, rules = synthetic_dataset(train=10, test=50), policy().data
    parameters = initial_parameters(LENET_61706.layout, 1)
    whole, parts = (
        evaluate(LENET_61706, parameters, dataset.test, rules, batch_size=size) for size in (50, 7)
    )
    assert whole.accuracy == parts.accuracy
    assert whole.loss == pytest.approx(parts.loss, rel=1e-6)
    with pytest.raises(BatchInvalid, match="no examples"):
        evaluate(LENET_61706, parameters, dataset.test.take(slice(0)), rules)


def test_synthetic_set_is_the_same_bytes_everywhere() -> None:
    dataset = synthetic_dataset(3, train=20, test=10)
    assert np.bincount(dataset.train.labels).tolist() == [2] * 10
    assert hashlib.sha256(dataset.train.images.tobytes()).hexdigest() == (
        "d196d4ba6bd46b0a5d72f6aa0abb20212ff3103ef62f315103e38db69ee6d3f1"
    )
    other = synthetic_dataset(4, train=20, test=10)
    assert not np.array_equal(dataset.train.images, other.train.images)


def test_features_are_normalised_by_the_policy() -> None:
    rules = policy().data
    images = np.array([0, 255, 33], np.uint8).reshape(3, 1, 1, 1).repeat(28, 1).repeat(28, 2)
    features = features_of(images, rules)
    assert features.dtype == np.float32
    expected = [np.float32((byte / 255 - 0.1307) / 0.3081) for byte in (0, 255, 33)]
    assert features[:, 0, 0, 0].tolist() == expected
    with pytest.raises(PolicyUnusable, match=r"images have shape \(28, 1, 1\)"):
        features_of(images[:, :, :1], rules)
    two_channels = rules.model_copy(update={"mean": (0.1, 0.2), "std": (1.0, 1.0)})
    with pytest.raises(PolicyUnusable, match="2 means, images have 1 channels"):
        features_of(images, two_channels)


def test_client_data_of_a_round_is_the_batch_and_its_words() -> None:
    rules, dataset = policy(batch_size=2), synthetic_dataset(train=20, test=10)
    data = ClientData(rules, dataset.train, client=3)
    features, labels = data.batch(4)
    chosen = data.schedule.indices(4)
    assert features.shape == (2, 28, 28, 1)
    assert np.array_equal(labels, dataset.train.labels[chosen])
    words = data.input_words(4)
    assert words.size == rules.input_format.words
    assert np.array_equal(words, rules.input_format.encode(features, labels))


def test_examples_of_another_kind_are_refused() -> None:
    with pytest.raises(BatchInvalid, match="must be uint8"):
        Examples(np.zeros((1, 28, 28, 1)), np.zeros(1, np.int64))
    with pytest.raises(BatchInvalid, match="must be 1 int64"):
        Examples(np.zeros((1, 28, 28, 1), np.uint8), np.zeros(2, np.int64))


def test_mean_gradient_is_that_of_the_encoded_gradients() -> None:
    fixed_point = FixedPoint(22, 64)
    generator = np.random.default_rng(0)
    gradients = [generator.standard_normal(100).astype(np.float32) for _ in range(3)]
    total = sum(fixed_point.encode_array("gradient", gradient) for gradient in gradients)
    mean = mean_gradient(total, 3, fixed_point)
    assert mean.dtype == np.float32
    np.testing.assert_allclose(mean, np.mean(gradients, 0), atol=1e-7)
    with pytest.raises(AggregateError, match="a mean of 0 gradients"):
        mean_gradient(total, 0, fixed_point)


def test_weights_hash_is_of_the_numbers_in_their_order() -> None:
    weights = np.arange(4, dtype=np.float32)
    assert weights_hash(weights) == weights_hash(weights.copy())
    assert len({weights_hash(weights), weights_hash(weights[::-1]), weights_hash(weights[:3])}) == 3
    with pytest.raises(AggregateError, match="expected flat float32"):
        weights_hash(weights.astype(np.float64))
