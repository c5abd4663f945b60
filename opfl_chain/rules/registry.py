"""Rules by name, built in or from plug-ins, and the plug-ins that a policy uses.

Verdicts and models depend on the code of plug-ins. So a policy names each with the digest of its
source, and participants compare before they run anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_core import from_json

from opfl_chain.learning.model import Model, operations_of
from opfl_chain.learning.operations.table import OPERATIONS
from opfl_chain.learning.optimizers import OPTIMIZERS
from opfl_chain.learning.registry import MODELS, model_of
from opfl_chain.protocol.errors import DocumentError
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.guided_rule import GuidedRule
from opfl_chain.rules.paper_rule import PaperRule
from opfl_chain.rules.proved_rule import ProvedRule
from opfl_chain.rules.rule import AnyRule, Rule, RuleError
from opfl_chain.system.plugins import Plugin, PluginError, Registry

DEFAULT_RULE: Final[AnyRule] = GuidedRule()
"""The rule of default policies."""
BUILTIN_RULES: Final[tuple[AnyRule, ...]] = (PaperRule(), DEFAULT_RULE, ProvedRule())


class RuleUnknown(RuleError):
    """A rule is not known by this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"rule {name!r} is unknown, known rules: {', '.join(known)}")


RULES: Final[Registry[AnyRule]] = Registry(
    "rule",
    "opfl_chain.rules",
    {rule.name: rule for rule in BUILTIN_RULES},
    RuleUnknown,
    lambda found: isinstance(found, Rule),
    lambda rule: rule.name,
)


def rule_named(name: str) -> AnyRule:
    """Return the rule of this name."""
    return RULES[name]


def rule_of(boundary: Boundary) -> AnyRule:
    """Return the rule that judges by this boundary."""
    return RULES[boundary.rule]


def rule_of_kind(kind: str) -> AnyRule:
    """Return our rule for a kind of audits: `plain`, `guided` or `proved`."""
    found = {rule.replay: rule for rule in BUILTIN_RULES}
    if kind not in found:
        raise RuleUnknown(f"of {kind} audits", list(found))
    return found[kind]


def rule_for(policy: Policy) -> AnyRule:
    """Return the rule that judges the replays of a policy: the plug-in that it names, or ours."""
    for plugin in policy.plugins:
        kind, _, name = plugin.partition(":")
        if kind == "rule":
            return RULES[name]
    return rule_of_kind(policy.replay.kind)


def boundary_from_json(data: bytes) -> Boundary:
    """Read a boundary of any rule from its canonical bytes."""
    boundary: Boundary = RULES[_rule_in(data)].boundary.from_json(data)
    return boundary


def _rule_in(data: bytes) -> str:
    """Return the name of a boundary's rule, which is not loaded for it."""
    try:
        fields: Any = from_json(data)
    except ValueError as error:
        raise DocumentError(f"boundary: invalid JSON: {error}") from None
    rule = fields.get("rule") if isinstance(fields, dict) else None
    if not isinstance(rule, str) or rule not in RULES:
        raise DocumentError(f"boundary rule is {rule!r}, known rules: {', '.join(RULES.names())}")
    return rule


def documents_from_json(policy_data: bytes, boundary_data: bytes) -> tuple[Policy, Boundary]:
    """Read policy and boundary of a job.

    Plug-ins are compared with those that the policy names before any of them is loaded.
    """
    policy = Policy.from_json(policy_data)
    require_plugins(policy)
    require_all_named(policy, _rule_in(boundary_data))
    return policy, boundary_from_json(boundary_data)


_REGISTRIES: Final[Mapping[str, Registry[Any]]] = {
    "model": MODELS,
    "operation": OPERATIONS,
    "optimizer": OPTIMIZERS,
    "rule": RULES,
}


class PluginMissing(PluginError):
    """A policy names a plug-in that is not installed."""

    def __init__(self, plugin: str, digest: str) -> None:
        kind, _, name = plugin.partition(":")
        super().__init__(
            f"the policy uses the plug-in {plugin} with source digest {digest}, but no installed"
            f" package has an entry point {name!r} in group {_REGISTRIES[kind].group}: install the"
            " package that has it"
        )


class PluginDiffers(PluginError):
    """An installed plug-in is not the one that a policy names."""

    def __init__(self, plugin: str, package: str, expected: str, found: str) -> None:
        super().__init__(
            f"the policy uses the plug-in {plugin} with source digest {expected}, but {package},"
            f" which is installed, has {found}: install the version that the policy names"
        )


class PluginUnnamed(PluginError):
    """A policy uses a plug-in without naming it."""

    def __init__(self, plugin: str, digest: str) -> None:
        super().__init__(
            f"the policy uses the plug-in {plugin} without naming it: add"
            f' {{"{plugin}": "{digest}"}} to its plugins'
        )


def plugins_used(model: Model, optimizer: str, rule: str) -> dict[str, str]:
    """Return the source digests of the plug-ins among these, as a policy names them."""
    used = [("model", model.name), ("optimizer", optimizer), ("rule", rule)]
    used += [("operation", name) for name in sorted(operations_of(model))]
    return _digests(used)


def _digests(used: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the source digests of the plug-ins among these kinds and names."""
    found = {f"{kind}:{name}": _REGISTRIES[kind].plugin(name) for kind, name in used}
    return {name: plugin.digest for name, plugin in found.items() if plugin is not None}


def installed_digests(policy: Policy) -> dict[str, str]:
    """Return the source digests of plug-ins that a policy names, as they are installed here."""
    found = {name: _installed(name) for name in policy.plugins}
    return {name: plugin.digest for name, plugin in found.items() if plugin is not None}


def _installed(name: str) -> Plugin | None:
    kind, _, own_name = name.partition(":")
    return _REGISTRIES[kind].plugin(own_name)


def require_plugins(policy: Policy) -> None:
    """Raise unless all plug-ins that a policy names are installed with the same source."""
    for name, digest in policy.plugins.items():
        plugin = _installed(name)
        if plugin is None:
            raise PluginMissing(name, digest)
        if plugin.digest != digest:
            package = f"{plugin.package} {plugin.version}".strip()
            raise PluginDiffers(name, package, digest, plugin.digest)


def require_all_named(policy: Policy, rule: str) -> None:
    """Raise unless a policy names all plug-ins that it and its rule use."""
    own = [("model", policy.model.name), ("optimizer", policy.optimizer.name), ("rule", rule)]
    _require_named(policy, own)
    operations = operations_of(model_of(policy))  # loads the model, which is named by now
    _require_named(policy, [("operation", name) for name in sorted(operations)])


def _require_named(policy: Policy, used: Sequence[tuple[str, str]]) -> None:
    for name, digest in _digests(used).items():
        if name not in policy.plugins:
            raise PluginUnnamed(name, digest)
