"""Attack `idle-connections` on MPC ports, on a member and on the server, for a whole job."""

from expectations import EveryJob
from scenario import Scenario

from opfl_chain.bench.attacks.disturbances import IdleStrangers
from opfl_chain.jobs.localnet.outcome import PASSED

CLIENTS = ("client-0", "client-1", "client-2")
MEMBERS = ("member-0", "member-1", "member-2")


class TestIdleConnections(EveryJob):
    scenario = Scenario.of(
        IdleStrangers, clients=(None, None, None), rounds=1, audit_rate=1.0, seed=1, score=False
    )

    def test_the_attack_took_place(self, played):
        """At MPC ports it depends on the moment: they are open only while members meet."""
        assert played.took_place

    def test_everybody_is_audited_and_passes(self, outcome):
        verdicts = {outcome.verdict(t, name) for t in range(outcome.rounds) for name in CLIENTS}
        assert verdicts == {PASSED}

    def test_all_members_attest_in_every_round(self, outcome):
        assert [outcome.attested(t) for t in range(outcome.rounds)] == [set(MEMBERS)]

    def test_nothing_is_held(self, outcome):
        assert outcome.held() == set()
