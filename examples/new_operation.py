"""A new operation with the equations that prove it, in a model whose steps clients prove.

Its entry point is `square = "my_package:SQUARE"` in the group `opfl_chain.operations`.
"""

from typing import Any

import opfl_chain
from opfl_chain import extend


class Square(extend.Operation):
    def shape(self, values: Any) -> Any:
        return values

    def torch(self, values: Any) -> Any:
        return values * values

    jax = torch

    def prove(self, layer: extend.Layer, values: extend.Wire) -> extend.Proved:
        """A square is a product of words; its errors are multiplied by twice the value."""
        builder, rules = layer.builder, layer.builder.rules
        exact = builder.settled_exactly(f"{layer.name}.input", values, rules.value_bits)

        def backward(errors: extend.Wire) -> list[extend.Wire]:
            scaled = (exact * errors).times(2)
            return [builder.rounded(f"{layer.name}.error", scaled, rules.error_bits)]

        return extend.Proved(exact * exact, backward)


class Squares(extend.Model):
    name, input_shape, classes = "squares", (28, 28, 1), 10
    layout = extend.ParameterLayout(extend.dense("only", 28 * 28, 10))

    def logits(self, parameters: Any, examples: Any, operations: extend.Operations) -> Any:
        flat = examples.reshape(examples.shape[0], -1)
        dense = operations.dense(flat, *parameters.values(), name="only")
        return operations.square(dense, name="logits")


SQUARE = Square()


def main() -> None:
    data = opfl_chain.load_dataset("synthetic")
    policy = opfl_chain.default_policy("squares", rule="proved", batch_size=8)
    boundary = opfl_chain.calibrate(policy, data, steps=6).boundary
    for attack in (None, "amplify:1.01"):
        batch = data.train.take(slice(8))
        found = opfl_chain.audit_step(policy, boundary, batch, attack=attack)
        print(f"{attack or 'honest'}: {found}")


if __name__ == "__main__":
    square = extend.OPERATIONS.plugged_in("square", SQUARE)
    with square, extend.MODELS.plugged_in("squares", Squares):
        main()
