"""Whether records are of the policy that they are read by.

A folder may name it. Steps and replays do not; but those of another model, batch, lift or scale
do not fit.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from opfl_chain.calibration.boundaries import Observation
from opfl_chain.calibration.identity import FILE
from opfl_chain.calibration.store import StepStore
from opfl_chain.evaluation.errors import RecordsInconsistent
from opfl_chain.models.model import Model
from opfl_chain.protocol.advice import lift_of
from opfl_chain.protocol.policy import GuidedReplay, Policy


def check_claim(folder: Path, policy: Policy) -> None:
    """Refuse a folder that says that it is of another policy."""
    path, ours = folder / FILE, "0x" + policy.hash.hex()
    if not path.is_file():
        return
    theirs = json.loads(path.read_text(encoding="utf-8")).get("policy_hash")
    if theirs != ours:
        raise RecordsInconsistent(
            folder, f"it was recorded with policy {theirs}, here it is {ours}"
        )


def check_policy(policy: Policy, model: Model, store: StepStore, rule: str, t: int) -> None:
    """Refuse a step and its replay that are not of the policy."""
    step, replayed = store.load_step(t), store.load_replay(rule, t)
    sizes = {
        "weights": (step.weights.size, model.layout.size),
        "gradient": (step.gradient.size, model.layout.trainable.size),
        "replay": (replayed.gradient.size, model.layout.trainable.size),
        "labels": (len(step.labels), policy.data.batch_size),
    }
    for name, (size, expected) in sizes.items():
        if size != expected:
            raise RecordsInconsistent(
                store.folder, f"step {t} has {size:,} {name}, by the policy {expected:,}"
            )
    guided = isinstance(policy.replay, GuidedReplay)
    logits = step.logits.astype(np.float64)
    lift = lift_of(logits, step.labels, policy.largest_lift) if guided else 0
    if replayed.lift != lift:
        raise RecordsInconsistent(
            store.folder,
            f"step {t} was replayed with lift {replayed.lift}, by the policy it has {lift}",
        )
    seen = Observation.of(policy, step.gradient, replayed)
    sizes_apart = np.linalg.norm(seen.replay) / max(float(np.linalg.norm(seen.gradient)), 1.0)
    if seen.gradient.any() and not math.sqrt(0.5) < sizes_apart < math.sqrt(2):
        raise RecordsInconsistent(
            store.folder,
            f"the replay of step {t} by rule {rule} is {sizes_apart:.3g} times as large as the"
            " gradient: it was made with another loss scale",
        )
