"""Clients that prove a step that they did not take; some forge the proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.proof import folding
from opfl_chain.protocol.proof.closing import STAGES
from opfl_chain.protocol.proof.combination import Coefficients, Coins
from opfl_chain.protocol.proof.package import Sharing
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.proof.statement import Words
from opfl_chain.protocol.proof.transcript import Transcript


class FalseDigits(Prover):
    """Balances the bound on the gradient's distance by a digit that is neither zero nor one."""

    def advise(self, group: Words) -> Elements:
        if group.name != "gradient.digits":
            return super().advise(group)
        named = {each.name: each.wire for each in self.statement.words}
        apart, allowed = (
            self.value(named[name]).to_signed() for name in ("gradient.apart", "gradient.allowed")
        )
        room = sum(each**2 for each in allowed) + self.statement.floor
        needed = room - sum(each**2 for each in apart)
        return Elements.of_python([needed] + [0] * (group.wire.size - 1))


class FalseProjections(Prover):
    """Says that the gradient is where the advice puts it."""

    def advise(self, group: Words) -> Elements:
        if group.name == "gradient.apart":
            return Elements.zeros(group.wire.shape)
        return super().advise(group)


class FalsePolynomials(Prover):
    """States polynomials whose sums are what they should be, at every level."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.sharing = _ForgedSharing(self, self.sharing)


class _ForgedSharing(Sharing):
    def __init__(self, prover: Prover, sharing: Sharing) -> None:
        super().__init__(sharing.seeds, sharing.salt, sharing.transcript, sharing.toss)
        self._prover = prover
        self._after: list[Transcript] = []
        self._missing = Elements.zeros((1,))

    def share(self, words: Elements) -> Transcript:
        stage = len(self._after)
        if stage >= STAGES:
            words = self._corrected(words.flat, first=stage == STAGES)
        self._after.append(super().share(words))
        return self._after[-1]

    def _corrected(self, values: Elements, *, first: bool) -> Elements:
        """Move the value at the point 1 so that the sum is the one that is claimed."""
        is_last = values.size == folding.LAST_VALUES
        points = range(0 if is_last else 1, values.size + (0 if is_last else 1))
        place = points.index(1)
        sums = values[place : place + folding.ARITY].sum().reshape(1)
        wrong = sums + self._rest() if first else sums - self._missing
        parts = [values[:place], values[place : place + 1] - wrong, values[place + 1 :]]
        forged = Elements.concatenate(parts)
        # The next claim is the value of the forged polynomial at a point that depends on it.
        following = self._transcript_after(forged)
        point = following.point("point", points[-1])
        self._missing = folding.lagrange(points, point).dot(forged).reshape(1)
        return forged

    def _transcript_after(self, words: Elements) -> Transcript:
        """Return the transcript after a stage, without sharing it."""
        trial = Sharing(self.seeds, self.salt, self.transcript, self.toss)
        trial._sent, trial._hashes = list(self._sent), list(self._hashes)
        return trial.share(words)

    def _rest(self) -> Elements:
        statement, after = self._prover.statement, self._after
        projections = statement.rules.projections
        small = sum(wire.size for wire in statement.shown_small)
        coins = Coins(
            after[0].coins("gradient", statement.coordinates, projections),
            after[1].coins("residuals", statement.residuals, projections),
            after[2].coins("words", small, projections),
        )
        drawn = Coefficients.draw(statement, coins, after[STAGES - 1])
        return drawn.combine(self._prover.value).rest.reshape(1)


PROVERS: Final[Mapping[str, Callable[..., Prover]]] = {
    "plain proof": Prover,
    "false digits": FalseDigits,
    "false projections": FalseProjections,
    "false polynomials": FalsePolynomials,
}
"""Provers of clients whose gradient is moved."""
