import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.documents import MAX_JSON_INTEGER, canonical_json
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.policy import PAPER_GRID, AdamW, PluginOptimizer, Policy, Sgd
from opfl_chain.protocol.ring import FixedPoint

FIELDS = {
    "model": {"name": "lenet", "parameters": {"filters": 6, "bias": True}},
    "optimizer": {"name": "sgd", "learning_rate": 0.01, "momentum": 0.9},
    "data": {
        "input_shape": [28, 28, 1],
        "classes": 10,
        "mean": [0.1307],
        "std": [0.3081],
        "batch_size": 2,
    },
    "seeds": {"model": 0, "data": 1},
    "fraction_bits": 22,
    "loss_scale": 64,
    "audit_rate": 2**64,
    "commitment_scheme": "shares",
    "spu": {"version": "0.9.5", "exp_mode": "EXP_PADE"},
}
POLICY = Policy.from_mapping(FIELDS)

finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
decays = st.floats(min_value=0, max_value=1, exclude_max=True)
naturals = st.integers(0, MAX_JSON_INTEGER)
strings = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
options = st.dictionaries(
    strings,
    st.one_of(st.booleans(), st.integers(-MAX_JSON_INTEGER, MAX_JSON_INTEGER), finite, strings),
)
sizes = st.lists(st.integers(1, 1000), min_size=1, max_size=4)
optimizers = st.one_of(
    st.builds(
        Sgd, name=st.just("sgd"), learning_rate=positive, momentum=decays, weight_decay=positive
    ),
    st.builds(AdamW, name=st.just("adamw"), learning_rate=positive, beta1=decays, epsilon=positive),
    st.builds(PluginOptimizer, name=st.just("lion"), learning_rate=positive, options=options),
)
plugins = st.dictionaries(
    st.from_regex(r"(model|operation|optimizer|rule):[a-z]{1,9}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    max_size=3,
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    channels = draw(st.integers(1, 4))
    optimizer = draw(optimizers)
    named = {"optimizer:lion": "ab" * 32} if isinstance(optimizer, PluginOptimizer) else {}
    return Policy.from_mapping(
        {
            "model": {"name": draw(strings), "parameters": draw(options)},
            "optimizer": optimizer,
            "data": {
                "input_shape": draw(sizes),
                "label_shape": draw(st.lists(st.integers(1, 9), max_size=2)),
                "classes": draw(st.integers(2, 2**32)),
                "mean": draw(st.lists(finite, min_size=channels, max_size=channels)),
                "std": draw(st.lists(positive, min_size=channels, max_size=channels)),
                "batch_size": draw(st.integers(1, MAX_JSON_INTEGER)),
            },
            "seeds": {"model": draw(naturals), "data": draw(naturals)},
            "fraction_bits": draw(st.integers(0, 61)),
            "loss_scale": 1 << draw(st.integers(0, 32)),
            "audit_rate": draw(st.integers(0, 2**64)),
            "commitment_scheme": draw(st.sampled_from(Scheme)),
            "quantile_grid": sorted(draw(st.sets(st.integers(1, 1000), min_size=1, max_size=30))),
            "spu": {
                "version": draw(strings),
                "exp_mode": draw(strings),
                "runtime_options": draw(options),
                "compiler_options": draw(options),
            },
            "plugins": {**draw(plugins), **named},
        }
    )


@given(policies())
def test_policy_round_trips(policy):
    data = policy.canonical_json
    assert Policy.from_json(data) == policy
    assert policy.hash == keccak256(data)


@given(policies())
def test_canonical_json_is_plain_json_with_sorted_keys(policy):
    text = policy.canonical_json.decode("utf-8")
    fields = json.loads(text)
    assert fields["audit_rate"] == str(policy.audit_rate)
    plain = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert plain == text


@given(policies(), policies())
def test_hashes_are_equal_iff_policies_are(a, b):
    assert (a.hash == b.hash) == (a == b)


@given(policies(), st.data())
def test_bytes_that_differ_are_refused_or_another_policy(policy, data):
    encoded = bytearray(policy.canonical_json)
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    try:
        other = Policy.from_json(bytes(encoded))
    except DocumentError:
        return
    assert other != policy
    assert other.canonical_json == bytes(encoded)


@given(st.binary(max_size=200))
def test_garbage_is_refused(data):
    with pytest.raises(DocumentError):
        Policy.from_json(data)


DIGEST = "ab" * 32
LION = {"name": "lion", "learning_rate": 0.1, "options": {"beta": 0.9}}


def test_policy_without_plugins_does_not_mention_them():
    assert b"plugins" not in POLICY.canonical_json
    assert Policy.from_mapping(FIELDS | {"plugins": {}}).canonical_json == POLICY.canonical_json
    with pytest.raises(DocumentError, match="not canonical JSON"):
        Policy.from_json(POLICY.canonical_json[:-1] + b',"plugins":{}}')


def test_policy_names_plugins_with_their_digests():
    named = {"model:mlp": DIGEST, "rule:linf": DIGEST}
    policy = Policy.from_mapping(FIELDS | {"plugins": named})
    assert policy.plugins == named
    assert Policy.from_json(policy.canonical_json) == policy
    assert policy.hash != POLICY.hash


def test_optimizer_of_a_plugin_is_a_name_and_options():
    fields = FIELDS | {"optimizer": LION, "plugins": {"optimizer:lion": DIGEST}}
    policy = Policy.from_mapping(fields)
    assert policy.optimizer == PluginOptimizer(**LION)
    assert Policy.from_json(policy.canonical_json) == policy


def test_optimizer_of_a_plugin_must_be_named_as_one():
    with pytest.raises(DocumentError, match="plugins must name 'optimizer:lion' with its digest"):
        Policy.from_mapping(FIELDS | {"optimizer": LION})


def test_policy_says_how_to_encode():
    assert POLICY.fixed_point == FixedPoint(22, 64)
    range_ = (-0.1307 / 0.3081, (1 - 0.1307) / 0.3081)
    assert POLICY.input_format == InputFormat((2, 28, 28, 1), (2,), 10, 22, range_)


def test_grid_of_the_paper_is_the_default():
    assert POLICY.quantile_grid == PAPER_GRID
    assert len(PAPER_GRID) == 21
    assert PAPER_GRID[:5] == (20, 50, 100, 150, 200)
    assert PAPER_GRID[-4:] == (850, 900, 950, 980)


def test_audit_rate_may_be_a_decimal_string():
    assert Policy.from_mapping(FIELDS | {"audit_rate": str(2**64)}) == POLICY


def test_numbers_keep_their_type():
    with_options = {"model": {"name": "m", "parameters": {"a": 1, "b": 1.0, "c": True, "d": "1"}}}
    policy = Policy.from_mapping(FIELDS | with_options)
    assert b'{"a":1,"b":1.0,"c":true,"d":"1"}' in policy.canonical_json
    integer = FIELDS | {"optimizer": {"name": "sgd", "learning_rate": 1}}
    assert b'"learning_rate":1.0' in Policy.from_mapping(integer).canonical_json


def test_policy_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        POLICY.loss_scale = 1


def test_nan_that_slipped_past_validation_has_no_canonical_json():
    optimizer = POLICY.optimizer.model_copy(update={"momentum": float("nan")})
    with pytest.raises(DocumentError, match="Policy has no canonical JSON"):
        canonical_json(POLICY.model_copy(update={"optimizer": optimizer}))


def changed(path: str, value: object) -> dict:
    fields = deepcopy(FIELDS)
    *parents, last = path.split(".")
    inner = fields
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    return fields


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("colour", "red", "Policy: colour is an unknown field"),
        ("data.colour", "red", "Policy: data.colour is an unknown field"),
        ("optimizer.nesterov", True, "optimizer.sgd.nesterov is an unknown field"),
        ("data", {"classes": 10}, "data.input_shape is missing; data.mean is missing"),
        ("optimizer.name", "lion", "'lion' found using 'name' does not match.*'sgd', 'adamw'"),
        ("optimizer.learning_rate", "0.1", "learning_rate is '0.1': input should be a valid num"),
        ("optimizer.learning_rate", float("nan"), "learning_rate is nan: input should be a fini"),
        ("optimizer.learning_rate", 0.0, "learning_rate is 0.0: input should be greater than 0"),
        ("optimizer.momentum", 1.0, "momentum is 1.0: input should be less than 1"),
        ("data.classes", 1, "data.classes is 1: input should be greater than or equal to 2"),
        ("data.classes", True, "data.classes is True: input should be a valid integer"),
        ("data.input_shape", [28, 0], "data.input_shape.1 is 0"),
        ("data.std", [1.0, 2.0], "data: there are 1 means and 2 deviations"),
        ("data.std", [0.0], "data.std.0 is 0.0"),
        ("seeds.model", 2**53, "seeds.model is 9007199254740992: input should be less"),
        ("fraction_bits", 62, r"fraction bits are 62, they must be in \[0, 61\]"),
        ("loss_scale", 63, "scale is 63, it must be a power of two"),
        ("audit_rate", 2**64 + 1, r"audit rate is 18446744073709551617, it must be in \[0, 2\^64"),
        ("audit_rate", "007", "audit_rate is '007': it must be decimal digits without a leading"),
        ("audit_rate", "-1", "audit_rate is '-1': it must be decimal digits"),
        ("audit_rate", "", "audit_rate is '': it must be decimal digits"),
        ("audit_rate", "٣", "it must be decimal digits"),
        ("audit_rate", "9" * 5000, r"audit_rate is '9+\.\.\.: it must have at most 78 digits"),
        ("audit_rate", 0.5, "audit_rate is 0.5: input should be a valid integer"),
        ("commitment_scheme", "none", "commitment_scheme is 'none': input should be 'shares' or"),
        ("quantile_grid", [], "quantile_grid"),
        (
            "quantile_grid",
            [50, 20],
            r"quantile_grid is \[50, 20\]: quantiles must be strictly increasing",
        ),
        ("quantile_grid", [0.5], "quantile_grid.0 is 0.5: input should be a valid integer"),
        ("quantile_grid", [1001], "quantile_grid.0 is 1001"),
        ("spu.field", "FM128", "spu.field is 'FM128': input should be 'FM64'"),
        ("spu.version", "", "spu.version is ''"),
        ("model.parameters.size", 2**53, "size is 9007199254740992: an integer must be within"),
        ("model.parameters.size", [1], r"size is \[1\]: an option is a boolean, an integer"),
        ("model.parameters.size", float("inf"), "size is inf: it must be a finite number"),
        ("model.parameters.size", None, "size is None: an option is"),
        ("plugins", {"mlp": DIGEST}, "plugins: 'mlp' does not name a plug-in: write KIND:NAME"),
        ("plugins", {"attack:x": DIGEST}, "with a kind of model, operation, optimizer, rule"),
        ("plugins", {"model:mlp": "ab"}, "the digest of model:mlp is 'ab', not 64 lower-case hex"),
        ("plugins", {"model:mlp": DIGEST.upper()}, "not 64 lower-case hex digits"),
        ("optimizer", LION | {"name": ""}, "optimizer.name is ''"),
        ("optimizer", LION | {"options": {"a": None}}, "optimizer.options.a is None: an option is"),
    ],
)
def test_malformed_policy_is_refused(path, value, message):
    with pytest.raises(DocumentError, match=message):
        Policy.from_mapping(changed(path, value))


def test_many_errors_are_cut_short():
    with pytest.raises(DocumentError, match=r"is missing; and 4 more$"):
        Policy.from_json(b"{}")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (POLICY.canonical_json + b"\n", r"not canonical JSON from byte \d+: b'\\n' must be b''"),
        (b" " + POLICY.canonical_json, "not canonical JSON from byte 0"),
        (b"{", "Invalid JSON"),
        (b"\xff", "Invalid JSON"),
        (b"[" * 10_000, "Invalid JSON: recursion limit"),
        (b"3", "Policy"),
    ],
)
def test_bytes_that_are_not_canonical_are_refused(data, message):
    with pytest.raises(DocumentError, match=message):
        Policy.from_json(data)
