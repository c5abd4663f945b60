"""How well a model does on examples that it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from opfl_chain.models.model import Model
from opfl_chain.models.torch_parameters import load_parameters
from opfl_chain.protocol.policy import DataRules
from opfl_chain.training.devices import pick_device
from opfl_chain.training.errors import BatchInvalid
from opfl_chain.training.examples import Examples
from opfl_chain.training.features import features_of


@dataclass(frozen=True)
class Evaluation:
    """The part of the examples that were classified rightly, and the mean cross-entropy."""

    accuracy: float
    loss: float
    examples: int


def evaluate(
    model: Model,
    parameters: Mapping[str, NDArray[np.float32]],
    examples: Examples,
    rules: DataRules,
    *,
    device: torch.device | None = None,
    batch_size: int = 500,
) -> Evaluation:
    """Evaluate in batches, which bounds the memory and does not change the result."""
    if not len(examples):
        raise BatchInvalid("there are no examples to evaluate the model on")
    device = device or pick_device()
    module = model.torch_module().to(device).eval()
    load_parameters(module, model.layout, parameters)
    right, loss = 0, 0.0
    with torch.inference_mode():
        for start in range(0, len(examples), batch_size):
            batch = examples.take(slice(start, start + batch_size))
            logits = module(torch.tensor(features_of(batch.images, rules), device=device))
            labels = torch.tensor(batch.labels, device=device)
            right += int((logits.argmax(1) == labels).sum())
            loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
    return Evaluation(right / len(examples), loss / len(examples), len(examples))
