"""A new attack: the gradient that a client submits instead of its honest one.

To play it in jobs (`cheat = "sparse:0.05"`), install a package with the entry point
`sparse = "my_package:Sparse"` in the group `opfl_chain.attacks`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import opfl_chain
from opfl_chain.extend import ATTACKS, Attack, AttackedStep, AttackState, parameter


@dataclass(frozen=True)
class Sparse(Attack):
    """Sends only the largest coordinates, to save the work of computing the others."""

    NAME = "sparse"
    kept: float = parameter("K", 0.1, most=1)
    """The part of the coordinates that is kept."""

    def submit(self, step: AttackedStep, state: AttackState) -> NDArray[np.float32]:
        del state  # for attacks that remember earlier rounds
        size = np.abs(step.gradient)
        return np.where(size >= np.quantile(size, 1 - self.kept), step.gradient, np.float32(0))


def main() -> None:
    data = opfl_chain.load_dataset("synthetic")
    batch = data.train.take(slice(8))
    with ATTACKS.plugged_in("sparse", Sparse):
        for attack in ("sparse:0.1", "sparse:1", Sparse(kept=0.5)):
            verdict = opfl_chain.audit_step("lenet-61706", None, batch, attack=attack)
            print(f"{attack}: {verdict}")


if __name__ == "__main__":
    main()
