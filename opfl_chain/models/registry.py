"""Models by the name that a policy gives."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from opfl_chain.models.errors import UnknownModel
from opfl_chain.models.lenet import LENET_61706, LENET_431080
from opfl_chain.models.model import Model

MODELS: Mapping[str, Model] = MappingProxyType(
    {model.name: model for model in (LENET_61706, LENET_431080)}
)


def model_named(name: str) -> Model:
    if name not in MODELS:
        raise UnknownModel(name, MODELS)
    return MODELS[name]
