"""The MPC process of a member that turns every opened bit around.

It changes one bit of the last message of the circuit, and of what it tells its own member. The next
member opens the same as it does, so that two of three say the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from opfl_chain.circuits.boolean import BooleanCircuit, Shared, Words
from opfl_chain.mpc.audit import judge
from opfl_chain.mpc.session import process

PROGRAM: Final = "opfl_chain.adversaries.flip_in_mpc"


class FlippingCircuit(BooleanCircuit):
    """Opens the lowest bit of every word turned around, for itself and the member after."""

    def open(self, shared: Shared) -> Words:
        return super().open(Shared(shared.own ^ np.uint64(1), shared.following))


def main() -> None:
    vars(judge).update(BooleanCircuit=FlippingCircuit)
    process.main()


if __name__ == "__main__":
    main()
