"""A new model: one class over the table of operations, calibrated and audited.

The same definition trains in torch and is replayed in MPC. To use it in jobs, install a package
with the entry point `perceptron = "my_package:Perceptron"` in the group `opfl_chain.models`.
"""

from collections.abc import Mapping
from typing import Any

import opfl_chain
from opfl_chain.extend import MODELS, Model, Operations, ParameterLayout, dense


class Perceptron(Model):
    """One hidden layer. Its width is an option of policies: `parameters = { width = 32 }`."""

    name = "perceptron"
    input_shape = (28, 28, 1)
    classes = 10

    def __init__(self, width: int = 16) -> None:
        self.width = width

    @property
    def options(self) -> dict[str, int]:
        return {"width": self.width}

    @property
    def layout(self) -> ParameterLayout:
        return ParameterLayout(
            (*dense("hidden", 28 * 28, self.width), *dense("out", self.width, self.classes))
        )

    def logits(self, parameters: Mapping[str, Any], examples: Any, operations: Operations) -> Any:
        def layer(values: Any, name: str) -> Any:
            weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
            return operations.dense(values, weight, bias, name=name)

        values = examples.reshape(examples.shape[0], -1)
        return layer(operations.relu(layer(values, "hidden"), name="hidden"), "out")


def main() -> None:
    data = opfl_chain.load_dataset("synthetic")
    batch = data.train.take(slice(4))
    with MODELS.plugged_in("perceptron", Perceptron):
        policy = opfl_chain.default_policy(Perceptron(width=32), batch_size=4)
        calibration = opfl_chain.calibrate(policy, data, steps=6, held_out=2)
        print(calibration.sentence)
        for attack in (None, "reverse"):
            verdict = opfl_chain.audit_step(policy, calibration.boundary, batch, attack=attack)
            print(f"{attack or 'honest'}: {verdict}")


if __name__ == "__main__":
    main()
