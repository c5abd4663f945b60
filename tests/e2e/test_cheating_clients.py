"""Every attack and every wrong delivery in one job in which everyone is audited."""

import pytest
from expectations import EveryJob
from scenario import UNSEEN, Scenario

from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.localnet.outcome import LEFT_OUT, PASSED

AT_ONCE = (
    *("reverse:1", "label-flip", "amplify:10", "free-rider", "backdoor"),
    *("adaptive:0.1", "tail-1:0.1", "tail-10:0.1"),
)
LATER = "reuse:2"
"""Its first gradient is fresh."""
MISDELIVERIES = {
    "withhold-shares": ("NOT_DELIVERED", DEPOSIT // 10),
    "wrong-opening": ("COMMITMENT_MISMATCH", DEPOSIT // 2),
    "other-input": ("INPUT_NOT_COMMITTED", DEPOSIT),
}


class TestCheatingClients(EveryJob):
    scenario = Scenario.of(
        clients=(None, None, LATER, *AT_ONCE, *MISDELIVERIES, *UNSEEN),
        rounds=2,
        audit_rate=1.0,
        server="wrong-model",
    )

    @pytest.mark.parametrize("cheat", AT_ONCE)
    def test_attack_fails_its_replay(self, played, outcome, cheat):
        assert outcome.verdict(0, played.client(cheat)) == "REPLAY_OUTSIDE"

    def test_reused_gradient_passes_when_fresh_and_fails_when_old(self, played, outcome):
        assert outcome.verdict(0, played.client(LATER)) == PASSED
        assert outcome.verdict(1, played.client(LATER)) == "REPLAY_OUTSIDE"

    @pytest.mark.parametrize("cheat", [*AT_ONCE, LATER])
    def test_attack_costs_the_whole_deposit(self, played, outcome, cheat):
        number = 1 if cheat == LATER else 0
        assert outcome.executed()[number, played.client(cheat)] == "REPLAY_OUTSIDE"
        assert outcome.lost_wei(played.client(cheat)) == DEPOSIT

    @pytest.mark.parametrize("cheat", AT_ONCE)
    def test_nothing_of_an_attacker_is_accepted_later(self, played, outcome, cheat):
        """It may have committed to its next step before it was slashed."""
        assert outcome.verdict(1, played.client(cheat)) in (LEFT_OUT, "REPLAY_OUTSIDE")

    @pytest.mark.parametrize("cheat", MISDELIVERIES)
    def test_wrong_delivery_is_charged_with_its_own_fault(self, played, outcome, cheat):
        name, (reason, penalty) = played.client(cheat), MISDELIVERIES[cheat]
        assert outcome.verdict(0, name) == reason
        charged = [why for (_, who), why in outcome.executed().items() if who == name]
        assert set(charged) == {reason}
        assert outcome.lost_wei(name) == min(penalty * len(charged), DEPOSIT)

    @pytest.mark.parametrize("cheat", UNSEEN)
    def test_undetectable_cheats_pass(self, played, outcome, cheat):
        assert [outcome.verdict(t, played.client(cheat)) for t in (0, 1)] == [PASSED, PASSED]

    def test_honest_work_passes(self, played, outcome):
        verdicts = [outcome.verdict(t, name) for t in (0, 1) for name in ("client-0", "client-1")]
        assert verdicts == [PASSED] * 4

    def test_only_cheats_are_slashed(self, played, outcome):
        cheats = {played.client(cheat) for cheat in (*AT_ONCE, LATER, *MISDELIVERIES)}
        assert {name for _, name in outcome.executed()} == cheats

    def test_members_are_paid_for_what_they_found(self, outcome):
        assert outcome.penalties() == {}
        for member in ("member-0", "member-1", "member-2"):
            assert outcome.credited_wei[outcome.address(member)] > 0

    def test_wrong_models_of_the_server_are_refused_and_got_from_members(self, outcome):
        """Everyone trained on the right model: honest work would not have passed otherwise."""
        assert outcome.verdict(1, "client-0") == PASSED
