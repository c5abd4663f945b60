"""Recomputing a tree commitment inside MPC."""

import numpy as np
import pytest
from three_members import compute, held, ring_components

from opfl_chain.mpc.audit.checks import tree_faults
from opfl_chain.protocol.commitments import Subject, salted_words, tree_commitment

SALT = bytes(range(32))


def opens(words, commitment, salt=SALT, subject=Subject.GRADIENT):
    components = ring_components(salted_words(words, salt), np.random.default_rng(1))
    faults = compute(
        lambda c: c.open(tree_faults(c, subject.tag, commitment, held(components, c.rank)))
    )
    return not faults.any()


@pytest.mark.parametrize("count", [1, 16, 17, 64, 65, 300])
def test_opening_is_checked(count):
    words = np.random.default_rng(count).integers(-(2**63), 2**63 - 1, count, dtype=np.int64)
    commitment = tree_commitment(Subject.GRADIENT, SALT, words)
    assert opens(words, commitment)
    changed = words.copy()
    changed[-1] ^= 1
    assert not opens(changed, commitment)
    assert not opens(words, commitment, salt=bytes(32))
    assert not opens(words, commitment, subject=Subject.INPUT)
    assert not opens(np.append(words, 0), commitment)
