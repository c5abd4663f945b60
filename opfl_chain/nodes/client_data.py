"""The part of a data set that one client trains on."""

from __future__ import annotations

from dataclasses import replace

from opfl_chain.attacks.attack import Attack
from opfl_chain.nodes.errors import NodeError
from opfl_chain.nodes.settings import DataSettings
from opfl_chain.protocol.policy import Policy
from opfl_chain.training.client_data import ClientData
from opfl_chain.training.datasets import load_dataset
from opfl_chain.training.partition import split_dirichlet, split_iid


def load_client_data(policy: Policy, settings: DataSettings, attack: Attack | None) -> ClientData:
    """What the client commits to: its examples, with the labels that it says they have."""
    if settings.part >= settings.parts:
        raise NodeError(
            f"data.part is {settings.part} and data.parts is {settings.parts}: parts are numbered"
            " from 0"
        )
    dataset = load_dataset(settings.dataset, settings.data_dir)
    seed, batch = policy.seeds.data, policy.data.batch_size
    if settings.split == "iid":
        parts = split_iid(len(dataset.train), settings.parts, seed, minimum=batch)
    else:
        labels = dataset.train.labels
        parts = split_dirichlet(labels, settings.parts, settings.alpha, seed, minimum=batch)
    examples = dataset.train.take(parts[settings.part])
    if attack is not None:
        labels = attack.training_labels(examples.labels, policy.data.classes)
        examples = replace(examples, labels=labels)
    return ClientData(policy, examples, settings.part)
