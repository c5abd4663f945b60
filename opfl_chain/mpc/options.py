"""What changes the numerics of a program, and so belongs to the policy and to every hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opfl_chain.mpc.errors import OptionsInvalid
from opfl_chain.mpc.native import libspu

if TYPE_CHECKING:  # a party's process reads no policies and starts without pydantic
    from opfl_chain.protocol.policy import Policy

Value = bool | int | float | str
SPU_VERSION = "0.9.5"

_OWN = {"protocol", "field", "fxp_fraction_bits", "fxp_exp_mode"}
"""Runtime options that have a field of their own here."""
_ENUMS = {
    "fxp_exp_mode": libspu.RuntimeConfig.ExpMode,
    "fxp_log_mode": libspu.RuntimeConfig.LogMode,
    "sigmoid_mode": libspu.RuntimeConfig.SigmoidMode,
    "sort_method": libspu.RuntimeConfig.SortMethod,
}
_MAX_FRACTION_BITS = 30
"""Products need twice as many, and the integer part must still fit."""


@dataclass(frozen=True)
class MpcOptions:
    """ABY3 in the ring of integers modulo 2^64, and the options of SPU that are not its defaults.

    `runtime` and `compiler` have the names of SPU's `RuntimeConfig` and `CompilerOptions`.
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
        self.runtime_config()  # refuses what SPU does not know
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
        """A fresh `libspu.RuntimeConfig`."""
        config = libspu.RuntimeConfig(
            protocol=libspu.ProtocolKind.ABY3,
            field=libspu.FieldType.FM64,
            fxp_fraction_bits=self.fraction_bits,
        )
        for name, value in {"fxp_exp_mode": self.exp_mode, **self.runtime}.items():
            _set("RuntimeConfig", config, name, value)
        return config

    def compiler_options(self) -> Any:
        """A fresh `libspu.CompilerOptions`."""
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


def _set(owner: str, target: Any, name: str, value: Value) -> None:
    if name.startswith("_") or not hasattr(target, name) or callable(getattr(target, name)):
        raise OptionsInvalid(f"SPU {SPU_VERSION} has no option {owner}.{name}")
    if name in _ENUMS:
        choices = _ENUMS[name].__members__
        if value not in choices:
            raise OptionsInvalid(f"{name} is {value!r}, it must be one of {', '.join(choices)}")
        value = choices[str(value)]
    elif type(value) is not type(getattr(target, name)):
        expected = type(getattr(target, name)).__name__
        raise OptionsInvalid(f"{owner}.{name} is {value!r}, it must be of type {expected}")
    setattr(target, name, value)
