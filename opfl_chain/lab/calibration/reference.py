"""Reference boundaries shipped with the package, for jobs without a calibration of their own.

A boundary belongs to one policy. But audit rate, commitment scheme, optimizer and seeds do not
affect the distance of a replay from its step: a policy that differs from a calibrated one only in
these may use the same bounds under its own hash.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opfl_chain.lab.errors import CalibrationError
from opfl_chain.protocol.policy import Policy
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.registry import boundary_from_json

_FOLDER = Path(__file__).with_name("reference")
_WITHOUT_EFFECT = ("audit_rate", "commitment_scheme", "optimizer", "seeds")


class NoReference(CalibrationError):
    """The package has no reference boundary that fits the policy."""


def reference_boundary(policy: Policy) -> Boundary:
    """Return the bounds of a calibrated policy with the same numerics, under this policy's hash."""
    known = []
    for path in sorted(_FOLDER.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if _numerics(document["policy"]) == _numerics(policy.model_dump(mode="json")):
            bounds = {**document["boundary"], "policy_hash": "0x" + policy.hash.hex()}
            canonical = json.dumps(bounds, sort_keys=True, separators=(",", ":"))
            return boundary_from_json(canonical.encode())
        known.append(path.stem)
    raise NoReference(
        f"no reference boundary for model {policy.model.name} with batches of"
        f" {policy.data.batch_size} and a {policy.replay.kind} replay (available:"
        f" {', '.join(known)}): make one with `opfl calibrate --policy FILE`"
    )


def _numerics(policy: dict[str, Any]) -> dict[str, Any]:
    plugins = policy.get("plugins", {})
    effective = {name: digest for name, digest in plugins.items() if "optimizer:" not in name}
    rest = {name: value for name, value in policy.items() if name not in _WITHOUT_EFFECT}
    return {**rest, "plugins": effective}
