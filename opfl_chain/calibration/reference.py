"""Boundaries that come with this package, for jobs that need not calibrate first.

A boundary is of one policy. But who is audited how often, from which seed, with which optimizer and
how it is committed changes nothing in how far a replay is from a step: a policy that differs from a
calibrated one in no more than that may have the same bounds, under its own hash.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opfl_chain.calibration.errors import CalibrationError
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.rules import Boundary, boundary_from_json

_FOLDER = Path(__file__).with_name("reference")
_WITHOUT_EFFECT = ("audit_rate", "commitment_scheme", "optimizer", "seeds")


class NoReference(CalibrationError):
    """No boundary of this package is for steps of such a policy."""


def reference_boundary(policy: Policy) -> Boundary:
    """The bounds of a calibrated policy with the same steps, under this policy's hash."""
    known = []
    for path in sorted(_FOLDER.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if _numerics(document["policy"]) == _numerics(policy.model_dump(mode="json")):
            bounds = {**document["boundary"], "policy_hash": "0x" + policy.hash.hex()}
            canonical = json.dumps(bounds, sort_keys=True, separators=(",", ":"))
            return boundary_from_json(canonical.encode())
        known.append(path.stem)
    raise NoReference(
        f"no boundary comes with the package for model {policy.model.name} with batches of"
        f" {policy.data.batch_size} and a {policy.replay.kind} replay (there are"
        f" {', '.join(known)}): make one with `opfl calibrate --policy FILE`"
    )


def _numerics(policy: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in policy.items() if name not in _WITHOUT_EFFECT}
