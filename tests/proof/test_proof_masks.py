"""Nobody learns from a proof whether a guess at the client's words is right."""

import numpy as np
from small_statements import CONTEXT, ENTROPY, small_statement

from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.protocol.proof.package import Sharing
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.proof.transcript import Transcript

SEEDS = b"\x01" * 32, b"\x02" * 32
START = Transcript.start(CONTEXT, bytes(32))


def leaves(salt: bytes) -> tuple[bytes, ...]:
    sharing = Sharing(SEEDS, salt, START)
    sharing.share(Elements.of_python([1, 2, 3]))
    return sharing.packages()[0].leaves.hashes


def test_who_expands_both_seeds_cannot_check_a_guess_at_the_words() -> None:
    first, second = leaves(b"\x03" * 32), leaves(b"\x04" * 32)
    assert first[:2] == second[:2]
    assert first[2] != second[2]


def test_member_without_component_2_does_not_get_its_salt() -> None:
    salt = b"\x05" * 32
    sharing = Sharing(SEEDS, salt, START)
    sharing.share(Elements.of_python([1, 2, 3]))
    packages = [package.encode() for package in sharing.packages()]
    assert [salt in package for package in packages] == [False, True, True]


def test_proofs_of_two_statements_share_no_masks() -> None:
    def seeds(statement: Statement) -> tuple[bytes, bytes]:
        rings = [np.zeros(9, np.uint64)] * 3
        return Prover(statement, CONTEXT, ENTROPY, rings, rings).sharing.seeds

    first, second = (small_statement(each, 2, 1) for each in (["square"], ["exact"]))
    assert not set(seeds(first)) & set(seeds(second))
    assert seeds(first) == seeds(small_statement(["square"], 2, 1))
