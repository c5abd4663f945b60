"""Bundles of small contributions and answers, and the keys of three members."""

from __future__ import annotations

import numpy as np

from opfl_chain.numerics.field import Elements
from opfl_chain.protocol.bundle import (
    Bundle,
    Parts,
    answer_parts,
    context,
    contribution_parts,
    seal,
)
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.commitments import Scheme, Subject
from opfl_chain.protocol.delivery import Expected
from opfl_chain.protocol.identifiers import JobId, RoundNumber, round_id_of
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.proof.package import Packages, ProofForm, Sharing
from opfl_chain.protocol.proof.transcript import Transcript
from opfl_chain.protocol.sealing import derived_key
from opfl_chain.protocol.shares import Committed, commit, share_advice

KEYS = [derived_key(bytes([seat + 1]) * 32, b"sealing") for seat in range(3)]
PUBLIC = [key.public for key in KEYS]
SEED = b"s" * 32
CLIENT = "0x" + "c1" * 20
ROUND = round_id_of(JobId(7), RoundNumber(2))
PROOF_FORM = ProofForm((3, 2, 1))


def made_context(kind: BundleKind, client: str = CLIENT) -> bytes:
    return context(b"d" * 32, ROUND, b"o" * 32, client, kind)


def expected_in(scheme: Scheme, extra: str = "", rank: int = 0) -> Expected:
    advice, proof = 4 if extra == "advice" else 0, PROOF_FORM if extra == "proof" else None
    return Expected(scheme, rank, 5, 3, advice, proof)


def gradient(scheme: Scheme = Scheme.SHARES, seed: int = 1) -> Committed:
    words = np.random.default_rng(seed).integers(-(2**40), 2**40, 5)
    return commit(scheme, Subject.GRADIENT, words, bytes([seed]) * 32)


def training_input(scheme: Scheme = Scheme.SHARES) -> Committed:
    return commit(scheme, Subject.INPUT, np.arange(3), b"i" * 32)


def dataset(given: Committed) -> tuple[bytes, tuple[bytes, ...]]:
    """The root of a data set with this input in round 2, and the input's path."""
    tree = dataset_tree([b"0" * 32, b"1" * 32, given.commitment, b"3" * 32, b"4" * 32])
    return tree.root, tree.proof(2)


def proof() -> Packages:
    sharing = Sharing((b"x" * 32, b"y" * 32), b"z" * 32, Transcript.start(b"c" * 32, b"h" * 32))
    for size in PROOF_FORM.sizes:
        sharing.share(Elements.of_python(range(size)))
    return sharing.packages()


def made_answer(scheme: Scheme = Scheme.SHARES, extra: str = "") -> Parts:
    given = training_input(scheme)
    advice = share_advice(scheme, np.arange(4), b"i" * 32) if extra == "advice" else None
    return answer_parts(given, dataset(given)[1], advice, proof() if extra == "proof" else None)


def contribution(scheme: Scheme = Scheme.SHARES, client: str = CLIENT) -> Bundle:
    kind = BundleKind.CONTRIBUTION
    return seal(
        kind, made_context(kind, client), contribution_parts(gradient(scheme)), PUBLIC, SEED
    )


def answer(scheme: Scheme = Scheme.SHARES, extra: str = "") -> Bundle:
    kind = BundleKind.ANSWER
    return seal(kind, made_context(kind), made_answer(scheme, extra), PUBLIC, SEED)
