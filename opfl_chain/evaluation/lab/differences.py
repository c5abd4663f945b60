"""Why our figures differ from the paper's: one sentence or two for each table."""

from __future__ import annotations

DIFFERENCES = {
    "general-attacks": "",
    "adaptive-pgd": "",
    "tail-pgd": "",
    "drift": "",
    "cost": "",
    "deterrence": "",
}
