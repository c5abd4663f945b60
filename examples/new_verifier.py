"""A new verifier: a check of gradients in the clear, to compare with audits.

To have it in the tables of `opfl evaluate`, install a package with the entry point
`sign-agreement = "my_package:SignAgreement"` in the group `opfl_chain.verifiers`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from opfl_chain.extend import VERIFIERS, Penalty, Reference, Verifier

Vector = NDArray[np.float32]


class SignAgreement(Verifier):
    """Accepts gradients that mostly point where the gradient of public examples does."""

    name = "sign-agreement"
    compares_with_public = True

    def acceptance(self, submitted: Vector, reference: Reference) -> float:
        return float(np.mean(np.sign(submitted) == signs(reference)) > 0.5)

    def penalty(self, references: Sequence[Reference], wanted: torch.Tensor) -> Penalty:
        del wanted
        public = torch.from_numpy(np.stack([signs(each) for each in references]))
        return lambda submitted: torch.relu(-submitted * public).mean(1)


def signs(reference: Reference) -> Vector:
    assert reference.public is not None
    return np.sign(reference.public)


def main() -> None:
    rng = np.random.default_rng(0)
    gradients, noise = rng.normal(size=(2, 8, 1000)).astype(np.float32)
    seen = [Reference(each, each + apart) for each, apart in zip(gradients, noise, strict=True)]
    with VERIFIERS.plugged_in("sign-agreement", SignAgreement):
        for name in VERIFIERS.names():
            verifier = VERIFIERS[name].calibrated(seen)
            for factor in (1, -1, 10):
                accepted = [verifier.acceptance(factor * each.gradient, each) for each in seen]
                print(f"{name:16} accepts {np.mean(accepted):4.0%} of gradients times {factor}")


if __name__ == "__main__":
    main()
