"""The training policy: everything that must be equal for two executions of a step to agree."""

from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, field_validator, model_validator

from opfl_chain.protocol.documents import (
    Decimal,
    Document,
    Name,
    Natural,
    Options,
    Positive,
    Record,
)
from opfl_chain.protocol.fixed_point import FixedPoint
from opfl_chain.protocol.gradient import Scheme
from opfl_chain.protocol.inputs import InputFormat
from opfl_chain.protocol.sampling import probability_of

PAPER_GRID = (20, *range(50, 901, 50), 950, 980)
"""The paper's quantiles, in thousandths: 0.02, 0.05, 0.10, 0.15, ..., 0.90, 0.95, 0.98."""

NonNegative: TypeAlias = Annotated[float, Field(ge=0)]
Decay: TypeAlias = Annotated[float, Field(ge=0, lt=1)]
Above: TypeAlias = Annotated[float, Field(gt=0)]
Dimensions: TypeAlias = Annotated[tuple[Positive, ...], Field(strict=False)]
Grid: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(strict=False, min_length=1)
]


def _audit_rate(rate: int) -> int:
    probability_of(rate)  # refuses what is not a rate
    return rate


AuditRate: TypeAlias = Annotated[Decimal, AfterValidator(_audit_rate)]


def increasing(grid: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``grid`` if each of its quantiles is above the one before."""
    if any(before >= after for before, after in pairwise(grid)):
        raise ValueError("quantiles must increase from one to the next")
    return grid


class ModelRules(Record):
    """Which model is trained, and what it is built with."""

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


class DataRules(Record):
    """How examples become the input of a step. Shapes are of one example."""

    input_shape: Annotated[Dimensions, Field(min_length=1)]
    label_shape: Dimensions = ()
    classes: Annotated[int, Field(ge=2, le=1 << 32)]
    mean: Annotated[tuple[float, ...], Field(strict=False, min_length=1)]
    std: Annotated[tuple[Above, ...], Field(strict=False, min_length=1)]
    batch_size: Positive

    @property
    def feature_range(self) -> tuple[float, float]:
        """The smallest and the largest feature that an example in [0, 1] is normalised to."""
        pairs = list(zip(self.mean, self.std, strict=True))
        return min(-m / s for m, s in pairs), max((1 - m) / s for m, s in pairs)

    @model_validator(mode="after")
    def _one_std_for_each_mean(self) -> "DataRules":
        if len(self.mean) != len(self.std):
            raise ValueError(f"there are {len(self.mean)} means and {len(self.std)} deviations")
        return self


class Seeds(Record):
    """Where randomness comes from that every execution must share."""

    model: Natural
    data: Natural


class SpuRules(Record):
    """The MPC runtime and what changes its numerics."""

    version: Name
    protocol: Literal["ABY3"] = "ABY3"
    field: Literal["FM64"] = "FM64"
    exp_mode: Name
    runtime_options: Options = Field(default_factory=dict)
    compiler_options: Options = Field(default_factory=dict)


class PlainReplay(Record):
    """The committee replays a step from its input alone."""

    kind: Literal["plain"] = "plain"


class GuidedReplay(Record):
    """The committee replays a step along the client's advice, and checks that as well."""

    kind: Literal["guided"]
    largest_lift: Annotated[int, Field(ge=0, le=32)]
    """By how many powers of two the loss may be scaled up; ``loss_scale`` includes them."""


class Policy(Document):
    """The training policy of a job."""

    format: Literal["opfl.policy.v1"] = "opfl.policy.v1"
    model: ModelRules
    optimizer: Annotated[Sgd | AdamW, Field(discriminator="name")]
    data: DataRules
    seeds: Seeds
    fraction_bits: int
    loss_scale: int
    audit_rate: AuditRate
    commitment_scheme: Annotated[Scheme, Field(strict=False)]
    quantile_grid: Grid = PAPER_GRID
    replay: Annotated[PlainReplay | GuidedReplay, Field(discriminator="kind")] = PlainReplay()
    spu: SpuRules

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

    @property
    def fixed_point(self) -> FixedPoint:
        """How gradients are encoded."""
        return FixedPoint(self.fraction_bits, self.loss_scale)

    @property
    def largest_lift(self) -> int:
        """By how many powers of two a replay may scale the loss up, 0 for a plain one."""
        return self.replay.largest_lift if isinstance(self.replay, GuidedReplay) else 0

    @property
    def replay_scale(self) -> int:
        """The loss scale inside a replay that is not lifted."""
        return self.loss_scale >> self.largest_lift

    @property
    def input_format(self) -> InputFormat:
        """How the input of one step is encoded."""
        batch = (self.data.batch_size,)
        return InputFormat(
            feature_shape=batch + self.data.input_shape,
            label_shape=batch + self.data.label_shape,
            classes=self.data.classes,
            fraction_bits=self.fraction_bits,
            feature_range=self.data.feature_range,
        )
