"""The paper's own figures, to stand beside ours."""

from __future__ import annotations

ADAPTIVE_LENET: dict[str, dict[float, float]] = {
    "none": {0.01: 0, 0.1: 4.5, 0.5: 29.5, 1: 57, 2: 90, 5: 99, 10: 100},
    "rofl-l2": {0.01: 0, 0.1: 4.5, 0.5: 29.5, 1: 57, 2: 90, 5: 90.5, 10: 37},
    "rofl-linf": {0.01: 0, 0.1: 4.5, 0.5: 29.5, 1: 57, 2: 90, 5: 99, 10: 99.5},
    "eiffel": {0.01: 0, 0.1: 4.5, 0.5: 29.5, 1: 57, 2: 89.5, 5: 68, 10: 13},
    "risefl": {0.01: 0, 0.1: 4.5, 0.5: 29.5, 1: 57, 2: 90, 5: 97.99, 10: 71.48},
    "opfl-paper": dict.fromkeys((0.01, 0.1, 0.5, 1, 2, 5, 10), 0.0),
}
"""Attack success in per cent, by verifier and beta."""

TAIL_LENET: dict[float, dict[str, dict[float, float]]] = {
    0.01: {
        "none": {0.01: 0, 0.1: 0, 0.5: 0, 1: 1.5, 2: 6.5, 5: 24.5, 10: 43},
        "opfl-paper": dict.fromkeys((0.01, 0.1, 0.5, 1, 2, 5, 10), 0.0),
    },
    0.10: {
        "none": {0.01: 0, 0.1: 0, 0.5: 0, 1: 4.5, 2: 12, 5: 28.5, 10: 56.5},
        "opfl-paper": dict.fromkeys((0.01, 0.1, 0.5, 1, 2, 5, 10), 0.0),
    },
}
"""By part of the coordinates, verifier and beta."""

GENERAL = {"asr": 0.0, "frr": 0.0}
"""Of every attack, in per cent."""
GENERAL_ATTACKS = ("reuse", "reverse", "label-flip", "amplify")

COST: dict[str, tuple[float, float | None]] = {
    "full MPC": (1920.0, None),
    "OPFL, p = 0.1": (192.35, 1.11),
    "OPFL, p = 0.05": (96.32, 1.12),
    "OPFL, p = 0.01": (19.49, 1.76),
}
"""Seconds and deposit."""

TITLES = {
    "none": "no verifier",
    "rofl-l2": "RoFL-L2",
    "rofl-linf": "RoFL-Linf",
    "eiffel": "EIFFeL",
    "risefl": "RiseFL",
    "opfl-paper": "OPFL, paper's rule",
    "opfl-guided": "OPFL, our rule",
}
