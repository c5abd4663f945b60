"""The training policy: everything that must be equal for two executions of a step to agree."""

import re
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.documents import (
    Decimal,
    Document,
    Name,
    Natural,
    Options,
    Positive,
    Record,
)
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.randomness import probability_of
from opfl_chain.protocol.ring import FixedPoint

PAPER_GRID = (20, *range(50, 901, 50), 950, 980)
"""The paper's quantiles, in thousandths: 0.02, 0.05, 0.10, 0.15, ..., 0.90, 0.95, 0.98."""

NonNegative: TypeAlias = Annotated[float, Field(ge=0)]
Decay: TypeAlias = Annotated[float, Field(ge=0, lt=1)]
Above: TypeAlias = Annotated[float, Field(gt=0)]
Dimensions: TypeAlias = Annotated[tuple[Positive, ...], Field(strict=False)]
Grid: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(strict=False, min_length=1)
]
PLUGIN_KINDS: Final = ("model", "operation", "optimizer", "rule")
"""The kinds of plug-ins on which the result of an audit depends."""
_PLUGIN = re.compile(rf"(?:{'|'.join(PLUGIN_KINDS)}):[^\s:]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def _audit_rate(rate: int) -> int:
    probability_of(rate)  # refuses an invalid rate
    return rate


AuditRate: TypeAlias = Annotated[Decimal, AfterValidator(_audit_rate)]


def increasing(grid: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``grid`` if its quantiles are strictly increasing."""
    if any(before >= after for before, after in pairwise(grid)):
        raise ValueError("quantiles must be strictly increasing")
    return grid


class ModelRules(Record):
    """The model to train, and its parameters."""

    name: Name
    parameters: Options = Field(default_factory=dict)


class Sgd(Record):
    """Stochastic gradient descent, with momentum if it is not zero."""

    name: Literal["sgd"]
    learning_rate: Above
    momentum: Decay = 0.0
    weight_decay: NonNegative = 0.0


class AdamW(Record):
    """Adam with decoupled weight decay."""

    name: Literal["adamw"]
    learning_rate: Above
    beta1: Decay = 0.9
    beta2: Decay = 0.999
    epsilon: Above = 1e-8
    weight_decay: NonNegative = 0.01


class PluginOptimizer(Record):
    """An optimizer of another package, which the policy's `plugins` must name.

    The field `options`, which may be empty, tells it from the optimizers above.
    """

    name: Name
    learning_rate: Above
    options: Options


OptimizerRules: TypeAlias = Sgd | AdamW | PluginOptimizer

_BUILT_IN_OPTIMIZER: Final[TypeAdapter[Sgd | AdamW]] = TypeAdapter(
    Annotated[Sgd | AdamW, Field(discriminator="name")]
)


def _optimizer(value: Any, union: ValidatorFunctionWrapHandler) -> OptimizerRules:
    """Validate by the one class that is meant: errors of the union would be about all three."""
    del union
    if isinstance(value, PluginOptimizer) or (isinstance(value, dict) and "options" in value):
        return PluginOptimizer.model_validate(value)
    return _BUILT_IN_OPTIMIZER.validate_python(value)


def _plugins(named: dict[str, str]) -> dict[str, str]:
    for plugin, digest in named.items():
        if not _PLUGIN.fullmatch(plugin):
            raise ValueError(
                f"{plugin!r} does not name a plug-in: write KIND:NAME, with a kind of"
                f" {', '.join(PLUGIN_KINDS)}"
            )
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"the digest of {plugin} is {digest!r}, not 64 lower-case hex digits")
    return named


Plugins: TypeAlias = Annotated[dict[str, str], AfterValidator(_plugins)]
"""The SHA-256 digests of plug-ins' sources, by `kind:name`."""


class DataRules(Record):
    """The conversion of examples to the input of a step. Shapes are of one example."""

    input_shape: Annotated[Dimensions, Field(min_length=1)]
    label_shape: Dimensions = ()
    classes: Annotated[int, Field(ge=2, le=1 << 32)]
    mean: Annotated[tuple[float, ...], Field(strict=False, min_length=1)]
    std: Annotated[tuple[Above, ...], Field(strict=False, min_length=1)]
    batch_size: Positive

    @property
    def feature_range(self) -> tuple[float, float]:
        """The range of features to which examples in [0, 1] are normalised."""
        pairs = list(zip(self.mean, self.std, strict=True))
        return min(-m / s for m, s in pairs), max((1 - m) / s for m, s in pairs)

    @model_validator(mode="after")
    def _one_std_for_each_mean(self) -> "DataRules":
        if len(self.mean) != len(self.std):
            raise ValueError(f"there are {len(self.mean)} means and {len(self.std)} deviations")
        return self


class Seeds(Record):
    """The seeds of the randomness that all executions share."""

    model: Natural
    data: Natural


class SpuRules(Record):
    """The MPC runtime and its settings that change the numerics."""

    version: Name
    protocol: Literal["ABY3"] = "ABY3"
    field: Literal["FM64"] = "FM64"
    exp_mode: Name
    runtime_options: Options = Field(default_factory=dict)
    compiler_options: Options = Field(default_factory=dict)


class PlainReplay(Record):
    """The committee replays a step from its input alone."""

    kind: Literal["plain"] = "plain"

    @property
    def advised(self) -> bool:
        """Return whether clients advise the committee."""
        return False

    @property
    def lifts_words(self) -> bool:
        """Return whether the words of a replay are scaled up by its lift."""
        return True

    @property
    def largest_lift(self) -> int:
        """A plain replay does not scale the loss up."""
        return 0


class GuidedReplay(Record):
    """The committee replays a step along the client's advice, and checks the advice as well."""

    kind: Literal["guided"]
    largest_lift: Annotated[int, Field(ge=0, le=32)]
    """The powers of two by which the loss may be scaled up; ``loss_scale`` includes them."""

    @property
    def advised(self) -> bool:
        """Return whether clients advise the committee."""
        return True

    @property
    def lifts_words(self) -> bool:
        """Return whether the words of a replay are scaled up by its lift."""
        return True


class ProvedReplay(Record):
    """The client proves its step on secret shares; the committee answers linear queries.

    Bits are allocated so that honest steps stay below half of every bound; docs/PROOF.md derives
    them.
    """

    kind: Literal["proved"]
    largest_lift: Annotated[int, Field(ge=0, le=30)]
    """The powers of two by which the errors may be scaled up."""
    value_bits: Annotated[int, Field(ge=8, le=40)]
    """The fraction bits of activations."""
    error_bits: Annotated[int, Field(ge=8, le=60)]
    """The fraction bits of back-propagated errors."""
    unit_bits: Annotated[int, Field(ge=28, le=52)]
    """The fraction bits of probabilities; twice that unit is the largest quantum."""
    word_bits: Annotated[int, Field(ge=32, le=58)]
    """The bound on random projections of all words: 2^word_bits."""
    range_bits: Annotated[int, Field(ge=1, le=20)]
    """The integer bits of values that go into ReLUs."""
    projections: Annotated[int, Field(ge=128, le=1024, multiple_of=8)]
    """The number of random projections of each kind."""

    @property
    def advised(self) -> bool:
        """Return whether clients advise a replay: a proof has its own advice."""
        return False

    @property
    def lifts_words(self) -> bool:
        """Return whether a replay has words that are scaled up by its lift."""
        return False


class Policy(Document):
    """The training policy of a job."""

    format: Literal["opfl.policy.v1"] = "opfl.policy.v1"
    model: ModelRules
    optimizer: Annotated[OptimizerRules, WrapValidator(_optimizer)]
    data: DataRules
    seeds: Seeds
    fraction_bits: int
    loss_scale: int
    audit_rate: AuditRate
    commitment_scheme: Annotated[Scheme, Field(strict=False)]
    quantile_grid: Grid = PAPER_GRID
    replay: Annotated[PlainReplay | GuidedReplay | ProvedReplay, Field(discriminator="kind")] = (
        PlainReplay()
    )
    spu: SpuRules
    plugins: Plugins = Field(default_factory=dict, exclude_if=lambda named: not named)
    """Written only if there are any: a policy without plug-ins keeps its bytes and its hash."""

    @field_validator("quantile_grid")
    @classmethod
    def _increases(cls, grid: tuple[int, ...]) -> tuple[int, ...]:
        return increasing(grid)

    @model_validator(mode="after")
    def _encodes(self) -> "Policy":
        FixedPoint(self.fraction_bits, self.loss_scale)
        if self.replay_scale < 1:
            raise ValueError(
                f"loss scale {self.loss_scale} leaves no room for {self.largest_lift} lifts"
            )
        return self

    @model_validator(mode="after")
    def _proves_what_is_shared(self) -> "Policy":
        if self.proof is not None and self.commitment_scheme is not Scheme.SHARES:
            raise ValueError("a proof is about shares: commitment_scheme must be shares")
        return self

    @model_validator(mode="after")
    def _names_its_optimizer(self) -> "Policy":
        plugin = f"optimizer:{self.optimizer.name}"
        if isinstance(self.optimizer, PluginOptimizer) and plugin not in self.plugins:
            raise ValueError(
                f"optimizer {self.optimizer.name!r} is neither sgd nor adamw: plugins must name"
                f" {plugin!r} with its digest"
            )
        return self

    @property
    def fixed_point(self) -> FixedPoint:
        """The encoding of gradients."""
        return FixedPoint(self.fraction_bits, self.loss_scale)

    @property
    def largest_lift(self) -> int:
        """The powers of two by which a replay may scale the loss up; 0 for a plain replay."""
        return self.replay.largest_lift

    @property
    def proof(self) -> ProvedReplay | None:
        """The rules of proofs, None if the committee replays steps."""
        return self.replay if isinstance(self.replay, ProvedReplay) else None

    @property
    def replay_scale(self) -> int:
        """The loss scale inside a replay that is not lifted."""
        return self.loss_scale >> self.largest_lift

    @property
    def input_format(self) -> InputFormat:
        """The encoding of the input of one step."""
        batch = (self.data.batch_size,)
        return InputFormat(
            feature_shape=batch + self.data.input_shape,
            label_shape=batch + self.data.label_shape,
            classes=self.data.classes,
            fraction_bits=self.fraction_bits,
            feature_range=self.data.feature_range,
        )
