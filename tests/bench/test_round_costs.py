"""Costs of a round besides its audits, measured on a small gradient and a real chain."""

from opfl_chain.bench.round_costs import round_costs


def test_costs_of_a_round_are_measured_part_by_part():
    told = []
    found = round_costs(coordinates=300, input_words=50, clients=3, rounds=1, progress=told.append)
    assert found.clients == 3
    seconds = [value for name, value in found.report.items() if name.endswith("_seconds")]
    assert len(seconds) == 6 and min(seconds) > 0
    assert found.transfer_bytes > found.input_transfer_bytes > 50 * 8
    assert found.gas > 100_000
    assert told == ["sharing and sending", "checking", "aggregating", "playing rounds on a chain"]
