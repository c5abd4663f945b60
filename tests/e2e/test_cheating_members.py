"""A committee of which one member breaks the protocol, in every known way."""

import pytest
from changing_cheats import ChangingCheats
from expectations import EveryJob
from scenario import Scenario

from opfl_chain.chain.terms import DEPOSIT, STAKE
from opfl_chain.jobs.localnet.outcome import PASSED

ROUNDS = {
    "withhold-beacon": 0,
    "refuse-deliveries": 1,
    "lie": 2,
    "accuse": 3,
    "skip-audits": 4,
    "withhold-verdict": 5,
}
"""Cheats that attest nothing come last: the others help a silent member as long as they can."""
PENALTIES = {
    "withhold-beacon": "BEACON_WITHHELD",
    "skip-audits": "VERDICT_SILENCE",
    "withhold-verdict": "VERDICT_SILENCE",
    "lie": "VERDICT_DISSENT",
    "accuse": "VERDICT_DISSENT",
}
BAD = "member-2"
HONEST = ("client-0", "client-1")


class OneBadMember(ChangingCheats):
    def __init__(self, net):
        super().__init__(net, BAD, list(ROUNDS))


class TestCheatingMember(EveryJob):
    scenario = Scenario.of(
        OneBadMember,
        clients=(None, None, "amplify:10"),
        members=(None, None, "withhold-beacon"),
        rounds=len(ROUNDS),
        audit_rate=0.001,
        server="wrong-model-hash",
        score=False,
    )

    def test_withheld_beacon_has_the_whole_round_audited(self, outcome):
        names = (*HONEST, "client-2")
        assert all(outcome.is_audited(ROUNDS["withhold-beacon"], name) for name in names)
        assert [outcome.verdict(0, name) for name in names] == [PASSED, PASSED, "REPLAY_OUTSIDE"]

    def test_cheat_is_slashed_in_the_round_that_is_audited_for_want_of_a_beacon(self, outcome):
        assert outcome.executed() == {(ROUNDS["withhold-beacon"], "client-2"): "REPLAY_OUTSIDE"}
        assert outcome.lost_wei("client-2") == DEPOSIT

    @pytest.mark.parametrize("cheat", PENALTIES)
    def test_member_pays_for_its_fault_and_nobody_else_does(self, outcome, cheat):
        number = ROUNDS[cheat]
        paid = {name: faults for (t, name), faults in outcome.penalties().items() if t == number}
        assert paid == {BAD: {PENALTIES[cheat]}}

    def test_member_has_lost_the_sum_of_its_penalties(self, outcome):
        shares = STAKE // 4 + 2 * (STAKE // 10) + 2 * (STAKE // 5)
        assert outcome.lost_wei(BAD) == shares

    def test_refused_deliveries_are_charged_and_vetoed_with_receipts(self, outcome):
        number = ROUNDS["refuse-deliveries"]
        assert [outcome.verdict(number, name) for name in HONEST] == ["NOT_DELIVERED"] * 2
        slashes = [outcome.slash(number, name) for name in HONEST]
        assert all(slash is not None and slash.vetoed is not None for slash in slashes)

    def test_skipped_audits_leave_the_decision_to_the_others(self, outcome):
        number = ROUNDS["skip-audits"]
        assert outcome.attested(number) == {"member-0", "member-1"}
        assert [outcome.verdict(number, name) for name in HONEST] == [PASSED] * 2

    def test_withheld_verdict_is_not_needed(self, outcome):
        number = ROUNDS["withhold-verdict"]
        assert outcome.attested(number) == {"member-0", "member-1"}
        assert [outcome.verdict(number, name) for name in HONEST] == [PASSED] * 2

    def test_lie_about_a_verdict_is_outvoted(self, outcome):
        number = ROUNDS["lie"]
        assert outcome.attested(number) == {"member-0", "member-1", BAD}
        assert [outcome.verdict(number, name) for name in HONEST] == [PASSED] * 2

    def test_false_accusation_is_outvoted_and_slashes_nobody(self, outcome):
        number = ROUNDS["accuse"]
        assert [outcome.verdict(number, name) for name in HONEST] == [PASSED] * 2
        assert [outcome.slash(number, name) for name in HONEST] == [None, None]

    def test_wrong_model_hash_of_the_server_is_refused_and_the_job_goes_on(self, played, outcome):
        refused = [
            event
            for event in played.events("server")
            if event["event"] == "not executed" and str(event["intent"]).endswith("13" * 32)
        ]
        assert refused
        final = outcome.history.rounds.values()
        assert b"\x13" * 32 not in [round_.finalised.event.model_hash for round_ in final]
