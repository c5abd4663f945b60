"""Names of the inputs and outputs of replay programs.

They stand apart from the programs: a member's SPU process names arrays, and does without JAX.
"""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = "examples"
TARGETS: Final = "targets"
MASKS: Final = "masks"
LIFTS: Final = "lifts"
CEILINGS: Final = "ceilings"
GRADIENT: Final = "gradient"
PRE_ACTIVATIONS: Final = "pre_activations"
ARGUMENTS: Final = "arguments"
TOTALS: Final = "totals"
