"""Compiled programs and the options that change their numerics: members compare both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from opfl_chain.mpc.session.errors import ExecutableInvalid, OptionsInvalid
from opfl_chain.mpc.session.libspu import libspu
from opfl_chain.mpc.session.shares import DTYPES

if TYPE_CHECKING:
    from opfl_chain.protocol.policy import Policy


Value = bool | int | float | str
SPU_VERSION = "0.9.5"

_OWN = {"protocol", "field", "fxp_fraction_bits", "fxp_exp_mode"}
"""Runtime options that have a field of their own here."""
# Options for numerics, speed and profiling. SPU's other options set folders, servers and threads or
# print values, which is not for a policy to decide.
_RUNTIME = {
    "enable_hal_profile",
    "enable_lower_accuracy_rsqrt",
    "enable_pphlo_profile",
    "experimental_disable_mmul_split",
    "experimental_disable_vectorization",
    "experimental_enable_colocated_optimization",
    "experimental_enable_exp_prime",
    "experimental_enable_inter_op_par",
    "experimental_enable_intra_op_par",
    "experimental_exp_prime_disable_lower_bound",
    "experimental_exp_prime_enable_upper_bound",
    "experimental_exp_prime_offset",
    "fxp_div_goldschmidt_iters",
    "fxp_exp_iters",
    "fxp_log_iters",
    "fxp_log_mode",
    "fxp_log_orders",
    "public_random_seed",
    "quick_sort_threshold",
    "sigmoid_mode",
    "sine_cosine_iters",
    "sort_method",
    "trunc_allow_msb_error",
}
_COMPILER = {
    "disable_deallocation_insertion",
    "disable_div_sqrt_rewrite",
    "disable_maxpooling_optimization",
    "disable_partial_sort_optimization",
    "disable_reduce_truncation_optimization",
    "disable_select_optimization",
    "disable_sqrt_plus_epsilon_rewrite",
    "disallow_mix_types_opts",
    "enable_optimize_denominator_with_broadcast",
}
_ENUMS = {
    "fxp_exp_mode": libspu.RuntimeConfig.ExpMode,
    "fxp_log_mode": libspu.RuntimeConfig.LogMode,
    "sigmoid_mode": libspu.RuntimeConfig.SigmoidMode,
    "sort_method": libspu.RuntimeConfig.SortMethod,
}
_MAX_FRACTION_BITS = 30
"""Products have twice as many, and must leave room for the integer part."""
_MAGIC: Final = b"opfl executable 1\n"


@dataclass(frozen=True)
class MpcOptions:
    """Options of SPU that differ from its defaults; always ABY3 in the ring modulo 2^64.

    `runtime` and `compiler` use the names of SPU's `RuntimeConfig` and `CompilerOptions`.
    """

    fraction_bits: int = 22
    exp_mode: str = "EXP_PADE"
    runtime: Mapping[str, Value] = field(default_factory=dict)
    compiler: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.fraction_bits <= _MAX_FRACTION_BITS:
            raise OptionsInvalid(
                f"fraction bits are {self.fraction_bits}, they must be in [1, {_MAX_FRACTION_BITS}]"
            )
        if taken := _OWN & set(self.runtime):
            raise OptionsInvalid(f"set {', '.join(sorted(taken))} as a field, not under `runtime`")
        object.__setattr__(self, "runtime", MappingProxyType(dict(self.runtime)))
        object.__setattr__(self, "compiler", MappingProxyType(dict(self.compiler)))
        self.runtime_config()  # rejects unknown options
        self.compiler_options()

    @classmethod
    def of_policy(cls, policy: Policy) -> MpcOptions:
        rules = policy.spu
        if rules.version != SPU_VERSION:
            raise OptionsInvalid(
                f"the policy is for SPU {rules.version}, and this package works with {SPU_VERSION}"
            )
        return cls(
            policy.fraction_bits, rules.exp_mode, rules.runtime_options, rules.compiler_options
        )

    def runtime_config(self) -> Any:
        """Return a new `libspu.RuntimeConfig`."""
        _require_known("RuntimeConfig", self.runtime, _RUNTIME)
        config = libspu.RuntimeConfig(
            protocol=libspu.ProtocolKind.ABY3,
            field=libspu.FieldType.FM64,
            fxp_fraction_bits=self.fraction_bits,
        )
        for name, value in {"fxp_exp_mode": self.exp_mode, **self.runtime}.items():
            _set("RuntimeConfig", config, name, value)
        return config

    def compiler_options(self) -> Any:
        """Return a new `libspu.CompilerOptions`."""
        _require_known("CompilerOptions", self.compiler, _COMPILER)
        options = libspu.CompilerOptions()
        for name, value in self.compiler.items():
            _set("CompilerOptions", options, name, value)
        return options

    def to_json(self) -> dict[str, Any]:
        return {
            "spu": SPU_VERSION,
            "fraction_bits": self.fraction_bits,
            "exp_mode": self.exp_mode,
            "runtime": dict(sorted(self.runtime.items())),
            "compiler": dict(sorted(self.compiler.items())),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> MpcOptions:
        if document["spu"] != SPU_VERSION:
            raise OptionsInvalid(f"options are for SPU {document['spu']}, not {SPU_VERSION}")
        return cls(
            document["fraction_bits"],
            document["exp_mode"],
            document["runtime"],
            document["compiler"],
        )

    @property
    def digest(self) -> str:
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _require_known(owner: str, options: Mapping[str, Value], known: set[str]) -> None:
    if strange := sorted(options.keys() - known):
        raise OptionsInvalid(
            f"SPU {SPU_VERSION} has no option {owner}.{strange[0]} that a policy may set, only"
            f" {', '.join(sorted(known))}"
        )


def _set(owner: str, target: Any, name: str, value: Value) -> None:
    if name in _ENUMS:
        choices = _ENUMS[name].__members__
        if value not in choices:
            raise OptionsInvalid(f"{name} is {value!r}, it must be one of {', '.join(choices)}")
        value = choices[str(value)]
    elif type(value) is not type(getattr(target, name)):
        expected = type(getattr(target, name)).__name__
        raise OptionsInvalid(f"{owner}.{name} is {value!r}, it must be of type {expected}")
    if type(value) is int and value < 0:
        raise OptionsInvalid(f"{owner}.{name} is {value}, it must not be negative")
    try:
        setattr(target, name, value)
    except TypeError as error:
        raise OptionsInvalid(f"{owner}.{name} is {value!r}, which is out of range") from error


class Visibility(StrEnum):
    """Visibility of an input: known to all members, or shared among them."""

    PUBLIC = "public"
    SECRET = "secret"


@dataclass(frozen=True)
class Input:
    """An array that a program takes."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    visibility: Visibility


@dataclass(frozen=True)
class Output:
    """An array that a program yields, of which each member gets a share."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Executable:
    """SPU's code, its inputs and outputs, and the options it was compiled for."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    options: MpcOptions
    code: bytes

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that determines the computation."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_spu(self) -> Any:
        """Return a new `libspu.Executable`."""
        return libspu.Executable(
            name=self.name,
            input_names=[each.name for each in self.inputs],
            output_names=[each.name for each in self.outputs],
            code=self.code,
        )

    def to_bytes(self) -> bytes:
        header = {
            "name": self.name,
            "inputs": [asdict(each) for each in self.inputs],
            "outputs": [asdict(each) for each in self.outputs],
            "options": self.options.to_json(),
        }
        text = json.dumps(header, sort_keys=True).encode()
        return _MAGIC + len(text).to_bytes(8, "big") + text + self.code

    @classmethod
    def from_bytes(cls, data: bytes) -> Executable:
        """Parse a stored executable; only its canonical encoding is accepted."""
        try:
            executable = cls._parse(data)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ExecutableInvalid(f"not a stored executable: {error}") from error
        if executable.to_bytes() != data:
            raise ExecutableInvalid("not a stored executable: its encoding is not canonical")
        return executable

    @classmethod
    def _parse(cls, data: bytes) -> Executable:
        if not data.startswith(_MAGIC):
            raise ValueError("it does not begin with the magic line")
        start = len(_MAGIC) + 8
        end = start + int.from_bytes(data[len(_MAGIC) : start], "big")
        header = json.loads(data[start:end])
        return cls(
            _text(header["name"]),
            tuple(
                Input(*_array(each), Visibility(each["visibility"])) for each in header["inputs"]
            ),
            tuple(Output(*_array(each)) for each in header["outputs"]),
            MpcOptions.from_json(header["options"]),
            data[end:],
        )


def _array(facts: Any) -> tuple[str, tuple[int, ...], str]:
    """Parse name, shape and dtype."""
    shape, dtype = facts["shape"], facts["dtype"]
    if not isinstance(shape, list) or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"the shape {shape} is not a list of natural numbers")
    if dtype not in DTYPES:
        raise ValueError(f"the dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    return _text(facts["name"]), tuple(shape), dtype


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"the name {name!r} is not a string")
    name.encode()  # rejects lone surrogates
    return name
