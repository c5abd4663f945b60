"""Models by the name and the options that a policy gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from opfl_chain.learning.errors import ModelError, OptionsInvalid, UnknownModel
from opfl_chain.learning.lenet import LENET_61706, LENET_431080
from opfl_chain.learning.model import Model, Option, relu_units
from opfl_chain.protocol.advice import AdviceFormat
from opfl_chain.protocol.policy import Policy
from opfl_chain.system.plugins import Registry

T = TypeVar("T")

MODELS: Registry[Callable[..., Model]] = Registry(
    "model",
    "opfl_chain.models",
    {model.name: model.with_options for model in (LENET_61706, LENET_431080)},
    UnknownModel,
    callable,
)
"""Functions that make a model; their keyword parameters are the options of policies."""


def model_named(name: str, /, **options: Option) -> Model:
    """Return the model of this name, with these options."""
    model = made_with_options(f"model {name}", MODELS[name], options)
    if not isinstance(model, Model):
        raise ModelError(f"model {name} makes a {type(model).__name__}, expected a Model")
    if model.name != name:
        raise ModelError(f"model {name} calls itself {model.name!r}: the names must be the same")
    return model


def model_of(policy: Policy) -> Model:
    """Return the model of a policy."""
    return model_named(policy.model.name, **policy.model.parameters)


def advice_format_of(policy: Policy) -> AdviceFormat | None:
    """Return the format of clients' advice; None unless the replay is guided."""
    if not policy.replay.advised:
        return None
    batch = policy.data.batch_size
    return AdviceFormat(
        relu_units(model_of(policy), batch), policy.replay.largest_lift, batch, policy.fraction_bits
    )


def made_with_options(what: str, make: Callable[..., T], options: Mapping[str, Any]) -> T:
    """Call a factory whose keyword parameters are its options; `what` names it in errors."""
    parameters = [
        each
        for each in inspect.signature(make).parameters.values()
        if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    allowed = [each.name for each in parameters]
    if unknown := [name for name in options if name not in allowed]:
        raise OptionsInvalid(
            f"{what} has no option {unknown[0]!r}. Its options are: {', '.join(allowed) or 'none'}."
        )
    required = [each.name for each in parameters if each.default is each.empty]
    if missing := [name for name in required if name not in options]:
        raise OptionsInvalid(f"{what} needs the option {missing[0]!r}, which the policy lacks")
    return make(**options)
