"""A proof in several rounds: members toss coins after each stage that the client has fixed."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import pytest
from proof_steps import accepted, answers_to, cheating, honest_step

from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.proof.package import ProofForm


@dataclass
class Members:
    """Three members that commit to random strings, and open them once a stage is fixed."""

    seed: int
    said: list[bytes] = field(default_factory=list)
    tossed: list[bytes] = field(default_factory=list)

    def toss(self, said: bytes) -> bytes:
        """Toss coins after a stage, of which members know the leaf hashes."""
        rng = np.random.default_rng([self.seed, len(self.said)])
        strings = [rng.bytes(32) for _ in range(3)]
        commitments = [sha256(string).digest() for string in strings]
        self.said.append(said)
        assert [sha256(string).digest() for string in strings] == commitments
        self.tossed.append(b"".join(strings))
        return self.tossed[-1]


def test_a_proof_with_tossed_coins_is_accepted() -> None:
    step, members = honest_step(), Members(1)
    packages = cheating(step, toss=members.toss).prove().packages
    assert accepts(answers_to(step, packages, tossed=members.tossed))
    leaves = packages[0].leaves.hashes
    assert members.said == [b"".join(leaves[:3]), *leaves[3:]]
    assert len(members.tossed) == len(ProofForm.of(step.statement).sizes)


LEVELS = len(ProofForm.of(honest_step().statement).sizes)


@pytest.mark.parametrize("stage", range(LEVELS - 1))
def test_a_proof_is_rejected_if_the_coins_of_one_stage_differ(stage: int) -> None:
    step, members = honest_step(), Members(1)
    packages = cheating(step, toss=members.toss).prove().packages
    tossed = list(members.tossed)
    tossed[stage] = bytes(96)
    assert not accepts(answers_to(step, packages, tossed=tossed))


def test_members_that_use_different_coins_at_the_end_reject() -> None:
    """The client knows no coins of the last level: its proof fits to any, but to one at a time."""
    step, members = honest_step(), Members(1)
    packages = cheating(step, toss=members.toss).prove().packages
    other = [*members.tossed[:-1], bytes(96)]
    ours, theirs = (answers_to(step, packages, tossed=each) for each in (members.tossed, other))
    assert accepts(ours) and accepts(theirs)
    assert not accepts([ours[0], ours[1], theirs[2]])


def test_hashed_and_tossed_coins_do_not_mix() -> None:
    step, members = honest_step(), Members(2)
    packages = cheating(step, toss=members.toss).prove().packages
    assert not accepts(answers_to(step, packages))
    hashed = cheating(step).prove().packages
    assert not accepts(answers_to(step, hashed, tossed=members.tossed))


def test_a_cheat_is_rejected_with_tossed_coins() -> None:
    step, members = honest_step(), Members(3)
    wrong = step.gradient + (np.abs(step.gradient).max() // 1000)
    packages = cheating(step, gradient=wrong, toss=members.toss).prove().packages
    assert not accepts(answers_to(step, packages, gradient=wrong, tossed=members.tossed))
    assert accepted(step)
