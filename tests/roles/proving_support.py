"""A client that proves its steps, and what three members find in what it delivers."""

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
from opfl_chain.protocol.aggregate import weights_hash
from opfl_chain.protocol.delivery import Claim, Delivery, Expected, decode_delivery, encode_delivery
from opfl_chain.protocol.exchange import Report, verdict_of
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.roles.client.conduct import Conduct, LocalContribution
from opfl_chain.roles.client.contribution import Contributor, unnamed
from opfl_chain.rules.proved_rule import ProvedBoundary
from opfl_chain.rules.registry import rule_of

POLICY = default_policy("lenet-61706", rule="proved", batch_size=8)
BOUNDARY = reference_boundary(POLICY)
LAYOUT = model_of(POLICY).layout
WEIGHTS: NDArray[np.float32] = LAYOUT.flatten(initial_parameters(LAYOUT, 0))
CLIENT, ROUND = ClientIndex(3), RoundNumber(1)


def contributor(
    conduct: Conduct | None = None,
    boundary: ProvedBoundary = BOUNDARY,
    secret: bytes = b"\1" * 32,
    policy: Policy = POLICY,
) -> Contributor:
    data = ClientData(policy, load_dataset("synthetic").train, 0)
    return Contributor(policy, boundary, data, secret, conduct or Conduct(), rounds=3)


def found_by_members(
    own: Contributor, made: LocalContribution, deliveries: list[Delivery]
) -> tuple[set[ClientIndex], dict[ClientIndex, FaultReason]]:
    """Return what three members find, each alone with what it received."""
    tolerance = rule_of(BOUNDARY).tolerance(BOUNDARY)
    assert tolerance is not None
    form = proof_form(POLICY, tolerance)
    statement = statement_of(POLICY, tolerance, LAYOUT.unflatten(WEIGHTS))
    commitment = own.committed_gradient(ROUND, made.gradient).commitment
    claim = Claim(CLIENT, ROUND, commitment, own.dataset.root, audited=True)
    reports, sheets = [], []
    for rank, delivery in enumerate(deliveries):
        words = POLICY.input_format.words
        expected = Expected(POLICY.commitment_scheme, rank, LAYOUT.size, words, 0, form)
        received = decode_delivery(encode_delivery(delivery), expected)
        rows, answers = examine(
            expected,
            statement,
            lambda each, given: unnamed(ROUND, weights_hash(WEIGHTS), each.commitment, given),
            [claim],
            {CLIENT: received},
        )
        reports.append(Report(rank, bytes(32), tuple(rows)))
        sheets.append(answers)
    found, _ = verdict_of([claim], reports, sheets)
    return set(found.passed), {fault.client: fault.reason for fault in found.faults}
