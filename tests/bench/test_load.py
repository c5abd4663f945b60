"""Reports of `opfl bench load`, and the deliveries of its clients."""

import numpy as np
import pytest
from eth_account import Account

from opfl_chain.bench.load import PHASES, Load, RoundLoad, load_markdown, load_table
from opfl_chain.bench.load_client import LoadClient
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.delivery import Claim, Delivery, Expected, check_delivery
from opfl_chain.protocol.identifiers import ClientIndex


class Job:
    policy = Plan(audit_rate=0.0).policy
    boundary = reference_boundary(policy)


def load(*held):
    rounds = [
        RoundLoad(
            n,
            {phase: float(i + 1) for i, phase in enumerate(PHASES)},
            [1, 2, 3],
            {"server": 100 * n, "members": 300 * n},
        )
        for n in held
    ]
    return Load(4, "lenet-61706", 61_706, [7, 9, 8, 8], 1.5, rounds, [1.0, 2.0, 3.0]).report


def test_report_counts_the_clients_of_the_worst_round():
    report = load(4, 3, 4)
    assert report["clients_held_per_round"] == 3
    assert report["gas_per_client_and_round"] == 350  # median of the second and third round
    assert report["gas_to_enrol_per_client"] == 8
    assert report["seconds_per_round"] == sum(range(1, 7))
    assert list(report["seconds_per_phase"]) == list(PHASES)


def test_page_and_table_list_every_phase():
    report = load(4, 4)
    page = load_markdown(report)
    assert all(f"| {phase} |" in page for phase in (*PHASES, "all"))
    assert "4 of 4 clients were in each of 2 rounds." in page
    assert load_table(report).row_count == len(PHASES) + 1


@pytest.mark.parametrize("rank", range(3))
def test_delivery_opens_the_commitment_at_every_member(rank):
    client = LoadClient(Job, Account.create())
    made = client.contribution(1)
    expected = Expected(
        Scheme.SHARES, rank, Job.boundary.coordinates, Job.policy.input_format.words
    )
    claim = Claim(ClientIndex(0), 1, made.commitment, bytes(32), audited=False)
    check_delivery(expected, claim, Delivery(made.packages[rank]))
    assert client.contribution(1).commitment == made.commitment
    assert client.contribution(2).commitment != made.commitment
    assert np.ptp(client._words("gradient", 1, 100)) > 0
