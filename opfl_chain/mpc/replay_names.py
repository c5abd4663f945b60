"""What replays call their inputs and outputs."""

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
