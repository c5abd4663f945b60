"""A LeNet step with a guided replay: an honest client's commitment, delivery and advice."""

from functools import cache

import numpy as np

from opfl_chain.lab.sample_step import Step
from opfl_chain.learning.lenet import LENET_61706 as MODEL
from opfl_chain.learning.local_step import LocalStep
from opfl_chain.mpc.replay.compiler import compile_program
from opfl_chain.mpc.replay.programs import guided_replay_program
from opfl_chain.mpc.session.executable import MpcOptions
from opfl_chain.protocol.advice import AdviceFormat, advise
from opfl_chain.protocol.ring import FixedPoint
from opfl_chain.rules.guided import GUIDED_GRID, GuidedBoundary

LARGEST_LIFT = 22
REPLAY_SCALE = 64
SCALE = FixedPoint(22, REPLAY_SCALE << LARGEST_LIFT)
UNITS = 4704 + 1600 + 120 + 84
ADVICE = AdviceFormat(UNITS, LARGEST_LIFT, 1, 22)
MASK_TOLERANCE = 64


def on_grid(array):
    return (np.rint(array * np.float64(2**22)) / 2**22).astype(np.float32)


class GuidedStep(Step):
    """A step with the bias of label 0 raised by `certainty`, which makes the loss small."""

    def __init__(self, seed=0, certainty=0.0, label=0):
        super().__init__(MODEL, seed)
        weights = {name: on_grid(array) for name, array in self.weights.items()}
        weights["fc3.bias"] = on_grid(weights["fc3.bias"] + certainty * np.eye(10)[0])
        self.__dict__["weights"] = weights
        self.__dict__["examples"] = on_grid(self.examples)
        self.__dict__["labels"] = np.array([label])
        self.result = self._run(self.labels)
        masks = np.concatenate([mask.ravel() for mask in self.result.masks.values()])
        self.advice = advise(masks, self.result.logits, self.labels, LARGEST_LIFT)
        self.advice_words = ADVICE.encode(self.advice)
        self.words = SCALE.encode_array("gradient", self.result.gradient)

    def _run(self, label):
        local = LocalStep(MODEL, largest_lift=LARGEST_LIFT)
        return local.run(self.weights, self.examples, label, pre_activations=True)


@cache
def guided_replay(contributions=1):
    program = guided_replay_program(MODEL, 1, float(REPLAY_SCALE), LARGEST_LIFT, contributions)
    return compile_program(program, MpcOptions())


def guided_boundary(**fields):
    """A boundary of the usual shape and size."""
    return GuidedBoundary.from_mapping(
        {
            "policy_hash": "0x" + "00" * 32,
            "spu_version": "0.9.5",
            "coordinates": MODEL.layout.size,
            "grid": list(GUIDED_GRID),
            "allowance_shift": 13,
            "scale_quantile": 999,
            "resolution_bits": 26,
            "bounds": [64] * 20 + [256, 512, 2048],
            "infinity": 1 << 14,
            "mask_tolerance": MASK_TOLERANCE,
            "ceiling_tolerance": MASK_TOLERANCE,
            **fields,
        }
    )
