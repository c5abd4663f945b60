"""Commitments through the server's batch, opened inside MPC: scheme `mpc`."""

from expectations import EveryJob
from scenario import Scenario

from opfl_chain.chain.bindings.events import BatchCommitted, GradientCommitted
from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.localnet.outcome import PASSED
from opfl_chain.protocol.commitments import Scheme


class TestRelayedTrees(EveryJob):
    scenario = Scenario.of(
        clients=(None, None, "amplify:10"),
        rounds=1,
        audit_rate=1.0,
        scheme=Scheme.MPC,
        commit="relayed",
        score=False,
    )

    def test_all_commitments_are_in_one_batch(self, outcome):
        assert [entry.event.count for entry in outcome.trail.of(BatchCommitted)] == [3]
        assert list(outcome.trail.of(GradientCommitted)) == []

    def test_cheat_is_slashed_by_its_proof_in_the_batch(self, outcome):
        assert outcome.executed() == {(0, "client-2"): "REPLAY_OUTSIDE"}
        assert outcome.lost_wei("client-2") == DEPOSIT

    def test_honest_trees_open_and_pass(self, outcome):
        assert [outcome.verdict(0, name) for name in ("client-0", "client-1")] == [PASSED] * 2
