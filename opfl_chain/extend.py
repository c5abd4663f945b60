"""Interfaces of plug-ins: one import for authors of models, attacks, rules and the like.

A plug-in is a package with entry points. Nothing of opfl_chain is edited: install the package
beside it, and its names can be used in settings, in policies and on the command line.

    # pyproject.toml
    [project.entry-points."opfl_chain.models"]
    perceptron = "my_package.models:Perceptron"

    group                     an entry point is              to implement
    opfl_chain.models         a factory of `Model`s          `layout`, `logits`
    opfl_chain.operations     an `Operation`                 `shape`, `torch`, `jax`, often `mpc`;
                                                             `prove` for audits of kind proved
    opfl_chain.optimizers     a factory of `Optimizer`s      `start`, `update`
    opfl_chain.rules          a `Rule`                       `calibrate`, `causes`, `faults`
    opfl_chain.attacks        a subclass of `Attack`         `submit`
    opfl_chain.verifiers      a subclass of `Verifier`       `acceptance`, `penalty`
    opfl_chain.data_sources   a `DataSource`                 `load`

A factory is a class or function whose keyword parameters are the options that policies give.

The outcome of a job depends on its model, operations, optimizer and rule. A policy names those of
plug-ins with the digest of their source, and every participant compares it before it runs anything.

A script or notebook needs no package: `with MODELS.plugged_in("perceptron", Perceptron): ...`
registers an object of this process while the context lasts. See docs/API.md and examples/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opfl_chain.system.lazy import lazy_names

if TYPE_CHECKING:
    from opfl_chain.adversaries.gradients.attack import Attack, AttackedStep, AttackState, parameter
    from opfl_chain.adversaries.gradients.registry import ATTACKS
    from opfl_chain.circuits.arithmetic import (
        add_public,
        any_bit,
        any_word,
        at_most_public,
        count_lanes,
        disjunction,
        join,
        negative,
        stack,
        to_boolean,
        to_planes,
    )
    from opfl_chain.circuits.boolean import BooleanCircuit, Shared
    from opfl_chain.learning.data.datasets import DATASETS
    from opfl_chain.learning.data.examples import Dataset, DataSource, Examples
    from opfl_chain.learning.layout import Parameter, ParameterLayout, convolution, dense
    from opfl_chain.learning.model import Model
    from opfl_chain.learning.operations.operation import (
        Layer,
        Operation,
        Proved,
        PublicParameter,
        require,
        with_gradient,
    )
    from opfl_chain.learning.operations.table import OPERATIONS, Operations
    from opfl_chain.learning.optimizers import OPTIMIZERS, Optimizer, OptimizerState
    from opfl_chain.learning.registry import MODELS
    from opfl_chain.protocol.delivery import Held
    from opfl_chain.protocol.documents import Natural, Positive
    from opfl_chain.protocol.policy import Policy
    from opfl_chain.protocol.proof.statement import Builder
    from opfl_chain.protocol.proof.wires import Quadratic, Wire
    from opfl_chain.rules.boundary import Boundary
    from opfl_chain.rules.evidence import Evidence, Forms, Observation, Replay, ReplayOutputs
    from opfl_chain.rules.registry import RULES
    from opfl_chain.rules.rule import Rule
    from opfl_chain.system.plugins import Plugin, PluginBroken, PluginError, Registry
    from opfl_chain.verifiers.registry import VERIFIERS
    from opfl_chain.verifiers.verifier import Penalty, Reference, Verifier


__all__ = [
    "ATTACKS",
    "DATASETS",
    "MODELS",
    "OPERATIONS",
    "OPTIMIZERS",
    "RULES",
    "VERIFIERS",
    "Attack",
    "AttackState",
    "AttackedStep",
    "BooleanCircuit",
    "Boundary",
    "Builder",
    "DataSource",
    "Dataset",
    "Evidence",
    "Examples",
    "Forms",
    "Held",
    "Layer",
    "Model",
    "Natural",
    "Observation",
    "Operation",
    "Operations",
    "Optimizer",
    "OptimizerState",
    "Parameter",
    "ParameterLayout",
    "Penalty",
    "Plugin",
    "PluginBroken",
    "PluginError",
    "Policy",
    "Positive",
    "Proved",
    "PublicParameter",
    "Quadratic",
    "Reference",
    "Registry",
    "Replay",
    "ReplayOutputs",
    "Rule",
    "Shared",
    "Verifier",
    "Wire",
    "add_public",
    "any_bit",
    "any_word",
    "at_most_public",
    "convolution",
    "count_lanes",
    "dense",
    "disjunction",
    "join",
    "negative",
    "parameter",
    "require",
    "stack",
    "to_boolean",
    "to_planes",
    "with_gradient",
]

if not TYPE_CHECKING:  # type checkers would take any other name for one of these
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ATTACKS": "adversaries.gradients.registry:ATTACKS",
            "Attack": "adversaries.gradients.attack:Attack",
            "AttackState": "adversaries.gradients.attack:AttackState",
            "AttackedStep": "adversaries.gradients.attack:AttackedStep",
            "BooleanCircuit": "circuits.boolean:BooleanCircuit",
            "Boundary": "rules.boundary:Boundary",
            "Builder": "protocol.proof.statement:Builder",
            "DATASETS": "learning.data.datasets:DATASETS",
            "DataSource": "learning.data.examples:DataSource",
            "Dataset": "learning.data.examples:Dataset",
            "Evidence": "rules.evidence:Evidence",
            "Examples": "learning.data.examples:Examples",
            "Forms": "rules.evidence:Forms",
            "Held": "protocol.delivery:Held",
            "Layer": "learning.operations.operation:Layer",
            "MODELS": "learning.registry:MODELS",
            "Model": "learning.model:Model",
            "Natural": "protocol.documents:Natural",
            "OPERATIONS": "learning.operations.table:OPERATIONS",
            "OPTIMIZERS": "learning.optimizers:OPTIMIZERS",
            "Observation": "rules.evidence:Observation",
            "Operation": "learning.operations.operation:Operation",
            "Operations": "learning.operations.table:Operations",
            "Optimizer": "learning.optimizers:Optimizer",
            "OptimizerState": "learning.optimizers:OptimizerState",
            "Parameter": "learning.layout:Parameter",
            "ParameterLayout": "learning.layout:ParameterLayout",
            "Penalty": "verifiers.verifier:Penalty",
            "Plugin": "system.plugins:Plugin",
            "PluginBroken": "system.plugins:PluginBroken",
            "PluginError": "system.plugins:PluginError",
            "Policy": "protocol.policy:Policy",
            "Positive": "protocol.documents:Positive",
            "Proved": "learning.operations.operation:Proved",
            "PublicParameter": "learning.operations.operation:PublicParameter",
            "Quadratic": "protocol.proof.wires:Quadratic",
            "RULES": "rules.registry:RULES",
            "Reference": "verifiers.verifier:Reference",
            "Registry": "system.plugins:Registry",
            "Replay": "rules.evidence:Replay",
            "ReplayOutputs": "rules.evidence:ReplayOutputs",
            "Rule": "rules.rule:Rule",
            "Shared": "circuits.boolean:Shared",
            "VERIFIERS": "verifiers.registry:VERIFIERS",
            "Verifier": "verifiers.verifier:Verifier",
            "Wire": "protocol.proof.wires:Wire",
            "add_public": "circuits.arithmetic:add_public",
            "any_bit": "circuits.arithmetic:any_bit",
            "any_word": "circuits.arithmetic:any_word",
            "at_most_public": "circuits.arithmetic:at_most_public",
            "convolution": "learning.layout:convolution",
            "count_lanes": "circuits.arithmetic:count_lanes",
            "dense": "learning.layout:dense",
            "disjunction": "circuits.arithmetic:disjunction",
            "join": "circuits.arithmetic:join",
            "negative": "circuits.arithmetic:negative",
            "parameter": "adversaries.gradients.attack:parameter",
            "require": "learning.operations.operation:require",
            "stack": "circuits.arithmetic:stack",
            "to_boolean": "circuits.arithmetic:to_boolean",
            "to_planes": "circuits.arithmetic:to_planes",
            "with_gradient": "learning.operations.operation:with_gradient",
        },
    )
