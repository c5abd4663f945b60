"""Answers and leaf hashes tell nothing about the words but whether they fit."""

from __future__ import annotations

from proof_steps import cheating, honest_step

from opfl_chain.protocol.proof.package import ProofForm, Sharing
from opfl_chain.protocol.proof.transcript import Transcript


def test_the_holder_of_both_seeds_cannot_confirm_a_guess_of_the_words() -> None:
    """It could compute the third component of guessed words: only the salt keeps its hash apart."""
    step = honest_step()
    prover = cheating(step)
    packages = prover.prove().packages
    form = ProofForm.of(step.statement)
    stage = prover.value(step.statement.stage(0)[0].wire)

    def leaf(salt: bytes) -> bytes:
        sharing = Sharing(prover.sharing.seeds, salt, Transcript(bytes(32)))
        sharing.share(stage)
        return sharing.packages()[0].leaves.hashes[2]

    salt = prover.sharing.salt
    assert leaf(salt) == leaf(salt) != leaf(bytes(32))
    assert salt not in packages[0].encode()
    for package in packages[1:]:
        assert salt in package.encode()
        package.verify(form)
