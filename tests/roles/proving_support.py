"""A client that proves its steps, and what three members find in what it seals to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.learning.data.datasets import load_dataset
from opfl_chain.learning.data.partition import ClientData
from opfl_chain.learning.proved_step import proof_form, statement_of
from opfl_chain.learning.registry import model_of
from opfl_chain.learning.seeded import initial_parameters
from opfl_chain.mpc.audit.proved import examine
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.protocol.audit_exchange import Conclusion, ReportRow, conclude
from opfl_chain.protocol.bundle import Bundle, Parts, check_bundle
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.delivery import Claim, Delivery, Expected
from opfl_chain.protocol.errors import DoesNotOpen
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.package import ProofForm
from opfl_chain.protocol.sealing import Complaint, derived_key
from opfl_chain.protocol.unsealing import complain, complaint_stands, open_answer, open_contribution
from opfl_chain.roles.client.conduct import Conduct, LocalContribution
from opfl_chain.roles.client.contribution import Contributor, unnamed
from opfl_chain.rules.proved_rule import ProvedBoundary
from opfl_chain.rules.registry import rule_of

POLICY = default_policy("lenet-61706", rule="proved", batch_size=8)
BOUNDARY = reference_boundary(POLICY)
LAYOUT = model_of(POLICY).layout
WEIGHTS: NDArray[np.float32] = LAYOUT.flatten(initial_parameters(LAYOUT, 0))
CLIENT, ROUND = ClientIndex(3), RoundNumber(1)
OPENING, PLACE = b"\7" * 32, b"\6" * 32
"""The opening of the round, and the context of all bundles."""
KEYS = [derived_key(bytes([seat]) * 32, b"member") for seat in range(3)]


def contributor(
    conduct: Conduct | None = None,
    boundary: ProvedBoundary = BOUNDARY,
    secret: bytes = b"\1" * 32,
    policy: Policy = POLICY,
    kind: type[Contributor] = Contributor,
) -> Contributor:
    data = ClientData(policy, load_dataset("synthetic").train, 0)
    return kind(policy, boundary, data, secret, conduct or Conduct(), rounds=3)


def the_form() -> ProofForm:
    tolerance = rule_of(BOUNDARY).tolerance(BOUNDARY)
    assert tolerance is not None
    return proof_form(POLICY, tolerance)


def expected_by(seat: int) -> Expected:
    words = POLICY.input_format.words
    return Expected(POLICY.commitment_scheme, seat, LAYOUT.size, words, 0, the_form())


def sealed(
    own: Contributor,
    kind: BundleKind,
    made: LocalContribution,
    opening: bytes = OPENING,
    parts: Parts | None = None,
) -> Bundle:
    """Return a bundle for three members, with other parts than the client's if they are given."""
    parts = parts or own.parts(kind, ROUND, opening, made)
    return own.seal(kind, opening, PLACE, parts, [key.public for key in KEYS])


def found_by_members(
    own: Contributor, made: LocalContribution, answer: Bundle | None = None
) -> Conclusion:
    """Return what three members conclude from what they open, each alone.

    The answer is the client's own, unless another one is given. Who cannot open it complains.
    """
    tolerance = rule_of(BOUNDARY).tolerance(BOUNDARY)
    assert tolerance is not None
    statement = statement_of(POLICY, tolerance, LAYOUT.unflatten(WEIGHTS))
    contribution = sealed(own, BundleKind.CONTRIBUTION, made)
    answer = answer or sealed(own, BundleKind.ANSWER, made)
    claim = Claim(CLIENT, ROUND, contribution.commitment, own.dataset.root, audited=True)
    rows: dict[int, ReportRow | Complaint] = {}
    words, standing = {}, []
    for seat, key in enumerate(KEYS):
        expected = expected_by(seat)
        received = Bundle.decode(answer.encode(), Limits.of(BundleKind.ANSWER, expected))
        check_bundle(received, PLACE, expected)
        gradient = open_contribution(contribution, seat, key, PLACE, expected)
        try:
            given, _, proof = open_answer(received, seat, key, PLACE, expected)
        except DoesNotOpen:
            complaint = complain(received, seat, key, PLACE)
            rows[seat] = complaint
            if complaint_stands(received, key.public, complaint, PLACE, expected):
                standing.append(seat)
            continue
        found = examine(
            expected,
            statement,
            lambda each, given: unnamed(ROUND, OPENING, each.commitment, given),
            [claim],
            {CLIENT: Delivery(gradient, given, None, proof)},
        )
        rows[seat], words[seat] = found[CLIENT]
    return conclude(rows, words, standing=standing)
