import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from protocol_vectors import words

from opfl_chain.protocol.errors import MerkleError, WidthError
from opfl_chain.protocol.hashing import MerkleTree, hash_pair, merkle_root, verify_proof

leaf_lists = st.lists(words, min_size=1, max_size=40, unique=True)


def pick_leaf(data: st.DataObject, leaves: list[bytes]) -> int:
    return data.draw(st.integers(0, len(leaves) - 1))


@given(leaf_lists)
def test_every_proof_verifies(leaves):
    tree = MerkleTree.of(leaves)
    for i, leaf in enumerate(leaves):
        assert verify_proof(tree.proof(i), tree.root, leaf)
    assert merkle_root(leaves) == tree.root


@given(leaf_lists, words, st.data())
def test_changed_leaf_does_not_verify(leaves, other, data):
    assume(other not in leaves)
    tree, i = MerkleTree.of(leaves), pick_leaf(data, leaves)
    assert not verify_proof(tree.proof(i), tree.root, other)


@given(st.lists(words, min_size=3, max_size=40, unique=True), st.data())
def test_proof_of_another_index_does_not_verify(leaves, data):
    tree, i, j = MerkleTree.of(leaves), pick_leaf(data, leaves), pick_leaf(data, leaves)
    assume(i != j)
    assert not verify_proof(tree.proof(j), tree.root, leaves[i])


@given(st.lists(words, min_size=2, max_size=40, unique=True), words, st.data())
def test_changed_proof_does_not_verify(leaves, other, data):
    tree, i = MerkleTree.of(leaves), pick_leaf(data, leaves)
    proof = list(tree.proof(i))
    at = data.draw(st.integers(0, len(proof) - 1))
    assume(proof[at] != other)
    assert not verify_proof([*proof[:at], other, *proof[at + 1 :]], tree.root, leaves[i])
    assert not verify_proof(proof[:at] + proof[at + 1 :], tree.root, leaves[i])
    assert not verify_proof([*proof, other], tree.root, leaves[i])


@given(leaf_lists, words, st.data())
def test_changed_leaf_changes_the_root(leaves, other, data):
    i = pick_leaf(data, leaves)
    assume(other not in leaves)
    changed = [*leaves[:i], other, *leaves[i + 1 :]]
    assert merkle_root(changed) != merkle_root(leaves)


@given(words, words)
def test_pairs_are_sorted(a, b):
    assert hash_pair(a, b) == hash_pair(b, a)


def test_single_leaf_is_its_own_root():
    tree = MerkleTree.of([b"\x01" * 32])
    assert tree.root == b"\x01" * 32
    assert tree.proof(0) == ()


def test_odd_last_leaf_moves_up_unchanged():
    a, b, c = (bytes([i]) * 32 for i in range(3))
    assert merkle_root([a, b, c]) == hash_pair(hash_pair(a, b), c)
    assert MerkleTree.of([a, b, c]).proof(2) == (hash_pair(a, b),)


def test_empty_tree_is_refused():
    with pytest.raises(MerkleError, match="at least one leaf"):
        MerkleTree.of([])


@pytest.mark.parametrize("index", [-1, 2])
def test_proof_of_a_missing_leaf_is_refused(index):
    with pytest.raises(MerkleError, match=f"leaf {index} is not in a tree of 2 leaves"):
        MerkleTree.of([bytes(32), b"\x01" * 32]).proof(index)


def test_short_leaf_is_refused():
    with pytest.raises(WidthError, match="leaf 1 has 31 bytes"):
        MerkleTree.of([bytes(32), bytes(31)])
