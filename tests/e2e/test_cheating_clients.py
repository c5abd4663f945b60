"""Clients that cheat in every known way, in jobs in which everyone is audited."""

import pytest
from expectations import EveryJob
from named_attacks import NamedAttacks
from scenario import UNSEEN, Scenario

from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.localnet.outcome import LEFT_OUT, OUTSIDE, PASSED, UNANSWERED
from opfl_chain.protocol.commitments import Scheme

HONEST = ("client-0", "client-1", "client-2")

AT_ONCE = (
    *("reverse:1", "label-flip", "amplify:10", "free-rider", "backdoor"),
    *("adaptive:0.1", "tail-1:0.1", "tail-10:0.1"),
)
LATER = "reuse:2"
"""Its first gradient is fresh."""


class TestAttacksOnGradients(EveryJob):
    scenario = Scenario.of(
        clients=(None, None, None, LATER, *AT_ONCE, *UNSEEN),
        rounds=2,
        audit_rate=1.0,
        server="wrong-model",
    )

    @pytest.mark.parametrize("cheat", AT_ONCE)
    def test_attack_fails_its_replay(self, played, outcome, cheat):
        assert outcome.verdict(0, played.client(cheat)) == OUTSIDE

    def test_reused_gradient_passes_when_fresh_and_fails_when_old(self, played, outcome):
        found = [outcome.verdict(number, played.client(LATER)) for number in (0, 1)]
        assert found == [PASSED, OUTSIDE]

    @pytest.mark.parametrize("cheat", [*AT_ONCE, LATER])
    def test_attack_costs_the_whole_deposit(self, played, outcome, cheat):
        number = 1 if cheat == LATER else 0
        assert outcome.charged()[number, played.client(cheat)] == OUTSIDE
        assert outcome.lost_wei(played.client(cheat)) == DEPOSIT

    @pytest.mark.parametrize("cheat", AT_ONCE)
    def test_nothing_of_an_attacker_is_accepted_later(self, played, outcome, cheat):
        assert outcome.verdict(1, played.client(cheat)) == LEFT_OUT

    @pytest.mark.parametrize("cheat", UNSEEN)
    def test_undetectable_cheats_pass(self, played, outcome, cheat):
        assert [outcome.verdict(t, played.client(cheat)) for t in (0, 1)] == [PASSED, PASSED]

    def test_only_cheats_are_charged(self, played, outcome):
        cheats = {played.client(cheat) for cheat in (*AT_ONCE, LATER)}
        assert {name for _, name in outcome.charged()} == cheats

    def test_wrong_models_of_the_server_are_refused_and_got_from_members(self, outcome):
        """Everyone trained on the right model: honest work would not have passed otherwise."""
        verdicts = [outcome.verdict(t, name) for t in (0, 1) for name in HONEST]
        assert verdicts == [PASSED] * 6


BUNDLES = {
    "withhold-shares": LEFT_OUT,
    "wrong-opening": LEFT_OUT,
    "wrong-commitment": LEFT_OUT,
    "spoil-shares": LEFT_OUT,
    "spoil-two": LEFT_OUT,
    "high-s": LEFT_OUT,
    "two-contributions": PASSED,
    "two-answers": PASSED,
    "evade": PASSED,
    "split": PASSED,
    "amplify:10+evade": OUTSIDE,
    "amplify:10+split": OUTSIDE,
    "amplify:10+withhold-answer": UNANSWERED,
    "amplify:10+high-s": LEFT_OUT,
    "amplify:10+high-s-answer": UNANSWERED,
    "withhold-answer": UNANSWERED,
    "other-input": UNANSWERED,
    "spoil-answer": UNANSWERED,
    "forge": OUTSIDE,
}
"""False bundles and proofs, and what becomes of them in the first round."""
STALE = "stale-answer"


class TestFalseBundles(NamedAttacks):
    """`hide` is an idle server with a client that does not answer."""

    attacks = ("evade", "withhold", "high-s client", "hide")
    scenario = Scenario.of(
        clients=(None, None, None, STALE, *BUNDLES),
        rounds=2,
        audit_rate=1.0,
        audit="proved",
        server="idle",
    )

    @pytest.mark.parametrize("cheat", BUNDLES)
    def test_first_round_ends_as_the_rules_say(self, played, outcome, cheat):
        assert outcome.verdict(0, played.client(cheat)) == BUNDLES[cheat]

    @pytest.mark.parametrize("cheat", BUNDLES)
    def test_charge_is_the_whole_deposit_and_being_left_out_costs_nothing(
        self, played, outcome, cheat
    ):
        charged = BUNDLES[cheat] in (OUTSIDE, UNANSWERED)
        assert outcome.lost_wei(played.client(cheat)) == (DEPOSIT if charged else 0)

    @pytest.mark.parametrize("cheat", [each for each, end in BUNDLES.items() if end == LEFT_OUT])
    def test_false_contribution_is_on_no_roll(self, played, outcome, cheat):
        assert all(played.client(cheat) not in outcome.participants(number) for number in (0, 1))

    def test_answer_of_another_round_is_none(self, played, outcome):
        name = played.client(STALE)
        assert [outcome.verdict(number, name) for number in (0, 1)] == [PASSED, UNANSWERED]
        assert outcome.lost_wei(name) == DEPOSIT

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(t, name) for t in (0, 1) for name in HONEST] == [PASSED] * 6

    @pytest.mark.parametrize("name", ["member-0", "member-1", "member-2"])
    def test_verdicts_follow_from_the_answers_that_members_publish(self, played, name):
        report = played.check_published(name)
        assert report.first_failure is None
        assert sum(report.facts.values()) > len(BUNDLES)

    def test_members_exchange_kilobytes(self, played):
        ended = [event for event in played.events("member-0") if event["event"] == "ended"]
        assert "mpc_bytes_sent" not in ended[-1]

    def test_members_do_what_the_idle_server_does_not(self, outcome):
        assert outcome.gas.get("server", 0) == 0


class TestCommitmentsThatDoNotOpenInMpc(EveryJob):
    """In scheme `mpc` a commitment is opened after the seed, in the meeting that replays steps.

    There are several such cheats, so that some are audited and others are not.
    """

    CHEATS = tuple(f"client-{i}" for i in range(3, 9))

    scenario = Scenario.of(
        clients=(None, None, None, *["wrong-commitment"] * len(CHEATS)),
        rounds=1,
        audit_rate=0.5,
        scheme=Scheme.MPC,
    )

    @pytest.mark.parametrize("name", CHEATS)
    def test_cheat_is_on_the_roll(self, outcome, name):
        assert name in outcome.participants(0)

    @pytest.mark.parametrize("name", CHEATS)
    def test_cheat_is_outside_if_it_is_audited_and_left_out_if_not(self, outcome, name):
        expected = OUTSIDE if outcome.is_audited(0, name) else LEFT_OUT
        assert outcome.verdict(0, name) == expected

    @pytest.mark.parametrize("name", CHEATS)
    def test_cheat_pays_in_full_if_it_is_audited_and_nothing_if_not(self, outcome, name):
        charged = {(0, name): OUTSIDE} if outcome.is_audited(0, name) else {}
        assert {
            place: end for place, end in outcome.charged().items() if place[1] == name
        } == charged
        assert outcome.lost_wei(name) == (DEPOSIT if charged else 0)
        assert outcome.earned_wei(name) == 0

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(0, name) for name in HONEST] == [PASSED] * 3
