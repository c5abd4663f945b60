"""The MPC process of a member that makes the bit opened on a contribution one of its secret bits.

A member can add an error to what a conjunction yields: it changes its own component before it sends
it. The check of an input adds up the components of a word x, and an error in the carry that goes
into bit k changes the next carry if and only if the word's propagated bit k is one. A second error
takes back what the first one does to bit k itself. All bits of an honest target above k are zero,
so the contribution is found outside if and only if the bit is one. All below k are zero too, so
that the member, who holds two components, knows the carry into bit k, and reads bit k of the
target: whether the first image is of class 0.

A second replay without errors acquits the client, so nobody loses anything and nobody is named.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from opfl_chain.circuits.arithmetic import Held
from opfl_chain.circuits.boolean import BooleanCircuit, Shared, Words
from opfl_chain.mpc.audit import judge
from opfl_chain.mpc.audit.checks import InputRules, input_faults
from opfl_chain.mpc.session import process
from opfl_chain.mpc.session.requests import Join

PROGRAM: Final = "opfl_chain.adversaries.leak_in_mpc"
_FIRST_HEARING: Final = " 0"
"""The end of the name of a meeting before the verdict."""


class LeakingCircuit(BooleanCircuit):
    """Adds errors to conjunctions of the check of an input."""

    armed: ClassVar[bool] = True
    """True in the replay that is to be tampered with."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.errors: list[Words | None] = []
        """The errors of the next conjunctions."""

    def _reshared(self, own: bytes, shape: tuple[int, ...]) -> Shared:
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            own = (np.frombuffer(own, np.uint64) ^ error.reshape(-1)).tobytes()
        return super()._reshared(own, shape)


def leaking_input_faults(circuit: BooleanCircuit, rules: InputRules, words: Held) -> Shared:
    """Return the faults of an input, with one if the first word of its targets is `one`."""
    if isinstance(circuit, LeakingCircuit) and circuit.armed:
        targets = words[0].size - rules.feature_words
        checked = 2 * rules.feature_words + targets + targets // rules.classes
        error = np.zeros(checked, np.uint64)
        error[2 * rules.feature_words] = rules.one >> 1
        # The adder's conjunctions: carry-save, generated carries, and the first level of the tree.
        circuit.errors = [None, error, np.stack([error, np.zeros_like(error)])]
    return input_faults(circuit, rules, words)


class _Session(process.JoinedSession):
    """Tampers with the first replay of a contribution alone."""

    def __init__(self, server: process.Server, request: Join) -> None:
        LeakingCircuit.armed = request.audit.endswith(_FIRST_HEARING)
        super().__init__(server, request)


def main() -> None:
    vars(judge).update(BooleanCircuit=LeakingCircuit, input_faults=leaking_input_faults)
    vars(process).update(JoinedSession=_Session)
    process.main()


if __name__ == "__main__":
    main()
