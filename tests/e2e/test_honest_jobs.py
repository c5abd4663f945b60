"""Jobs with replays of the paper, and with the paper's commitments."""

from expectations import EveryJob
from scenario import Scenario

from opfl_chain.jobs.localnet.outcome import OUTSIDE, PASSED
from opfl_chain.protocol.commitments import Scheme

CLIENTS = ("client-0", "client-1", "client-2")


class HonestJob(EveryJob):
    def test_everybody_is_audited_and_passes(self, outcome):
        assert all(outcome.is_audited(0, name) for name in CLIENTS)
        assert [outcome.verdict(0, name) for name in CLIENTS] == [PASSED] * 3

    def test_nothing_is_held(self, outcome):
        assert outcome.held() == set()

    def test_seats_stay(self, outcome):
        assert outcome.seat_changes() == []


class TestCommitmentsOpenedInMpc(HonestJob):
    scenario = Scenario.of(clients=(None, None, None), rounds=1, audit_rate=1.0, scheme=Scheme.MPC)


class TestReplaysOfThePaper(EveryJob):
    scenario = Scenario.of(
        clients=(None, None, None, "amplify:10"), rounds=1, audit_rate=1.0, audit="plain"
    )

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(0, name) for name in CLIENTS] == [PASSED] * 3

    def test_cheat_is_charged_in_full(self, outcome):
        assert outcome.charged() == {(0, "client-3"): OUTSIDE}

    def test_seats_stay(self, outcome):
        assert outcome.seat_changes() == []
