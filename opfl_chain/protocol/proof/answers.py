"""The members' side: linear queries on what they hold, and the verdict.

Each component is answered by both of its holders. There is nothing to compute together: a member
can only lie in its answer, and then the other holder's answer differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opfl_chain.numerics.field import Elements
from opfl_chain.numerics.projections import project_words
from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.proof import folding
from opfl_chain.protocol.proof.closing import MASKS, STAGES, Statement
from opfl_chain.protocol.proof.combination import Coefficients, Coins
from opfl_chain.protocol.proof.evaluation import (
    Evaluation,
    as_integers,
    set_inputs,
    set_projected,
)
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofComponent, ProofForm, ProofLeaves
from opfl_chain.protocol.proof.transcript import Transcript
from opfl_chain.protocol.ring import UnsignedWords


@dataclass(frozen=True)
class Query:
    """All public randomness of one proof, the same for every component."""

    statement: Statement
    form: ProofForm
    coins: Coins
    coefficients: Coefficients
    transcripts: Sequence[Transcript]
    """The transcripts after each level of the folded proof."""

    @classmethod
    def of(
        cls,
        statement: Statement,
        context: bytes,
        leaves: ProofLeaves,
        tossed: Sequence[bytes] = (),
    ) -> Query:
        """Derive the queries from the leaf hashes of a proof."""
        projections, form = statement.rules.projections, ProofForm.of(statement)
        if len(leaves.hashes) != (expected := 2 + len(form.sizes)):
            raise ShareError(
                f"a proof has {len(leaves.hashes)} leaf hashes, this statement takes {expected}"
            )
        after = leaves.transcripts(Transcript.start(context, statement.hash), tossed)
        small = sum(wire.size for wire in statement.shown_small)
        coins = Coins(
            after[0].coins("gradient", statement.coordinates, projections),
            after[1].coins("residuals", statement.residuals, projections),
            after[2].coins("words", small, projections),
        )
        return cls(
            statement,
            form,
            coins,
            Coefficients.draw(statement, coins, after[STAGES - 1]),
            after[STAGES:],
        )

    def answer(
        self, part: ProofComponent, gradient: UnsignedWords, training_input: UnsignedWords
    ) -> Answer:
        """Answer for one component of the proof, of the gradient and of the input.

        Anyone who has the three answers the same: the two holders, or a third party that settles
        a difference between them.
        """
        statement = self.statement
        for name, words, expected in (
            ("gradient", gradient, statement.coordinates),
            ("input", training_input, statement.input_words),
        ):
            if words.size != expected:
                raise ShareError(
                    f"the {name} has {words.size:,} words, this statement takes {expected:,}"
                )
        value = Evaluation(Elements.scalar(1 if part.index == 0 else 0))
        stages = part.stages(self.form)
        for stage in range(STAGES):
            value.set_words(statement.stage(stage), stages[stage])
        set_inputs(statement, value, as_integers(training_input))
        projected = project_words(gradient, self.coins.gradient, statement.rules.projections)
        set_projected(statement, value, as_integers(projected))
        masks = next(value(group.wire) for group in statement.words if group.name == MASKS)
        combined = self.coefficients.combine(value)
        return folding.answer(combined, masks, stages[STAGES:], self.transcripts)


def accepts(answers: Sequence[Answer]) -> bool:
    """Return the verdict on the answers for all three components."""
    first, second, third = answers
    return (first + second + third).holds
