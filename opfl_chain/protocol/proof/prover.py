"""The client's side: advice on its own step, and the proof that it fits.

All that decides the verdict is known to the client, so it evaluates the statement on its own step,
in the clear and with the very coins of its proof, before anybody sees it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from opfl_chain.numerics.field import ELEMENT_BYTES, Elements
from opfl_chain.numerics.projections import project, project_words
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.proof import folding
from opfl_chain.protocol.proof.closing import (
    MASKS,
    RESIDUAL_PROJECTIONS,
    WORD_DIGITS,
    Statement,
)
from opfl_chain.protocol.proof.combination import Coefficients, Coins
from opfl_chain.protocol.proof.evaluation import (
    Evaluation,
    as_integers,
    biased_digits,
    gradient_value,
    residual_of,
    scaled_residuals,
    set_inputs,
    set_projected,
    small_vector,
)
from opfl_chain.protocol.proof.package import Packages, Sharing, Toss, no_coins
from opfl_chain.protocol.proof.statement import Words
from opfl_chain.protocol.proof.transcript import Transcript
from opfl_chain.protocol.proof.wires import Wire
from opfl_chain.protocol.ring import UnsignedWords
from opfl_chain.protocol.shares import key_stream
from opfl_chain.protocol.widths import bytes32

Rings: TypeAlias = Sequence[UnsignedWords]
"""The three components of committed ring words."""


@dataclass(frozen=True)
class Usage:
    """The part of each bound that a step uses; above 1 it fails. Equations that do not hold."""

    bounds: Mapping[str, float]
    broken: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether the step satisfies its statement."""
        return not self.broken and all(used <= 1 for used in self.bounds.values())

    def failures(self) -> list[str]:
        """Return what does not hold."""
        over = [
            f"{name}: {used:.3g} times the bound" for name, used in self.bounds.items() if used > 1
        ]
        return [*(f"{name} does not hold" for name in self.broken), *over]


@dataclass(frozen=True, eq=False)
class Proof:
    """A proof, and what the client knows about it."""

    packages: Packages
    usage: Usage


class Prover:
    """Proves one step. Subclasses that cheat override what they do differently.

    ``entropy`` is random and secret; the same entropy, context, statement and attempt give the same
    proof, so that no mask is used for two proofs and a restarted client sends the same bytes. Where
    members ``toss`` coins, a restarted client takes the same coins again or makes a new attempt.
    """

    def __init__(
        self,
        statement: Statement,
        context: bytes,
        entropy: bytes,
        gradient: Rings,
        training_input: Rings,
        *,
        attempt: int = 0,
        toss: Toss = no_coins,
    ) -> None:
        self.statement = statement
        self.value = Evaluation()
        self._gradient = gradient
        # The statement as well: at other weights the words differ, and so must their masks.
        secret = keccak256(
            bytes32("entropy", entropy),
            bytes32("context", context),
            statement.hash,
            attempt.to_bytes(8, "big"),
        )
        seeds = keccak256(secret, b"proof seed 0"), keccak256(secret, b"proof seed 1")
        salt = keccak256(secret, b"proof salt")
        self._mask_key = keccak256(secret, b"proof masks")
        self.sharing = Sharing(seeds, salt, Transcript.start(context, statement.hash), toss)
        whole = as_integers(training_input[0])
        for part in training_input[1:]:
            whole = whole + as_integers(part)
        set_inputs(statement, self.value, whole)

    # --- what a cheat may override

    def advise(self, group: Words) -> Elements:
        """Return the words of a group, computed from those before it."""
        return group.fill(self.value)

    def put(self, name: str, words: Elements) -> None:
        """Take words that follow from random coins."""
        self.value.set(self._wire(name), words)

    # --- stages

    def advise_all(self) -> None:
        """Advise all words of the step itself."""
        for group in self.statement.stage(0):
            self.value.set(group.wire, self.advise(group))

    def prove(self) -> Proof:
        """Advise, share and prove."""
        self.advise_all()
        coins, transcript, usage = self._evaluate(self._share)
        coefficients = Coefficients.draw(self.statement, coins, transcript)
        combined = coefficients.combine(self.value)
        folding.prove(combined, self.value(self._wire(MASKS)), self.sharing.share)
        return Proof(self.sharing.packages(), usage)

    def rehearse(self, seed: bytes) -> Usage:
        """Evaluate the statement on the advice with coins of a seed. Nothing is shared."""
        start = Transcript.start(seed, self.statement.hash)
        return self._evaluate(lambda stage: start.then(bytes([stage])))[2]

    def _evaluate(self, after: Callable[[int], Transcript]) -> tuple[Coins, Transcript, Usage]:
        """Compute all words that depend on coins; `after` has the coins that follow a stage."""
        statement, projections = self.statement, self.statement.rules.projections
        on_gradient = after(0).coins("gradient", statement.coordinates, projections)
        projected = self._project_gradient(on_gradient)
        for group in statement.stage(1):
            self.value.set(group.wire, self.advise(group))
        on_residuals = after(1).coins("residuals", statement.residuals, projections)
        residuals = scaled_residuals(statement, self.value, projected)
        self.put(RESIDUAL_PROJECTIONS, project(residuals, on_residuals, projections))
        transcript = after(2)
        small = small_vector(statement, self.value)
        on_words = transcript.coins("words", small.size, projections)
        of_words = project(small, on_words, projections)
        self.put(WORD_DIGITS, biased_digits(statement, of_words))
        self.put(MASKS, Elements.uniform(key_stream(self._mask_key, 2 * ELEMENT_BYTES)))
        for group in statement.stage(3):
            if group.name not in (WORD_DIGITS, MASKS):
                self.value.set(group.wire, self.advise(group))
        coins = Coins(on_gradient, on_residuals, on_words)
        return coins, after(3), self._usage(projected, of_words)

    def _share(self, stage: int) -> Transcript:
        groups = self.statement.stage(stage)
        return self.sharing.share(
            Elements.concatenate([self.value(group.wire) for group in groups])
        )

    def _project_gradient(self, coins: bytes) -> Elements:
        """Project the committed gradient, component by component, and the step's own."""
        statement, projections = self.statement, self.statement.rules.projections
        total = Elements.zeros((projections,))
        for part in self._gradient:
            total = total + as_integers(project_words(part, coins, projections))
        projected = project(gradient_value(statement, self.value), coins, projections)
        set_projected(statement, self.value, total)
        self.value.set(statement.projected, projected)
        return projected

    def _wire(self, name: str) -> Wire:
        return next(group.wire for group in self.statement.words if group.name == name)

    def _usage(self, projected: Elements, of_words: Elements) -> Usage:
        statement, value = self.statement, self.value
        broken = tuple(
            equation.name
            for equation in statement.equations
            if not equation.quantum and not residual_of(equation, value, projected).is_zero()
        )
        of_residuals = value(self._wire(RESIDUAL_PROJECTIONS)).to_signed()
        apart = value(self._wire("gradient.apart")).to_signed()
        allowed = value(self._wire("gradient.allowed")).to_signed()
        limit = sum(each**2 for each in allowed) + statement.floor
        bounds = {
            "gradient": part_of(sum(each**2 for each in apart), limit),
            "residuals": part_of(sum(each**2 for each in of_residuals), statement.residual_bound),
            "words": part_of_digits(statement, of_words),
        }
        return Usage(bounds, broken)


def part_of_digits(statement: Statement, of_words: Elements) -> float:
    """Return the part of the bound on words' projections that these use.

    Digits are of [-2^w, 2^w): the upper bound itself has none.
    """
    used = max(max(-each, each + 1) for each in of_words.to_signed())
    return part_of(used, 1 << statement.rules.word_bits)


def part_of(used: int, bound: int) -> float:
    """Return the part of a bound that is used: above 1 if it is exceeded, by however little."""
    part = used / max(1, bound)
    return max(part, math.nextafter(1, 2)) if used > bound else part
