"""One member breaks the protocol, in every known way: it changes nothing, and pays."""

from expectations import EveryJob
from scenario import Scenario

from opfl_chain.adversaries.members import MEMBERS
from opfl_chain.chain.terms import DEPOSIT, STAKE
from opfl_chain.jobs.localnet.outcome import OUTSIDE, PASSED, UNANSWERED

HONEST = ("client-0", "client-1", "client-2")
CHEAT = "client-3"
BAD = "member-0"


def job(bad, attack="amplify:10", audit="proved"):
    """Plan a job of two rounds in which everyone is audited and the first member is bad."""
    return Scenario.of(
        clients=(None, None, None, attack),
        members=(bad, None, None),
        rounds=2,
        audit_rate=1.0,
        audit=audit,
    )


def paid_for(*faults):
    """Expect that the bad member pays for these, and nobody else for anything."""
    return {BAD: set(faults)}


class OneBadMember(EveryJob):
    """Attacks in different duties do not disturb each other, so that one member plays several."""

    outcome_of_cheat = OUTSIDE

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(t, name) for t in (0, 1) for name in HONEST] == [PASSED] * 6

    def test_cheat_is_charged_in_full(self, outcome):
        assert outcome.charged() == {(0, CHEAT): self.outcome_of_cheat}
        assert outcome.lost_wei(CHEAT) == DEPOSIT

    def test_standby_takes_the_seat_of_the_member_at_fault(self, outcome):
        assert outcome.seat_changes() == [(BAD, "standby-0")]

    def test_honest_members_attest_in_every_round(self, outcome):
        for number in (0, 1):
            assert set(outcome.seats(number)) - {BAD} <= outcome.attested(number)


class TestLiar(OneBadMember):
    """`equivocate`, `withhold-beacon`, `flip` and `lie`, each in its phase."""

    scenario = job("equivocate+withhold-beacon+flip+lie")
    faults = paid_for("EQUIVOCATION", "WITHHELD", "FALSEHOOD", "DISSENT")

    def test_it_loses_its_stake(self, outcome):
        assert outcome.lost_wei(BAD) == STAKE

    def test_without_a_beacon_everybody_is_audited(self, outcome):
        assert outcome.history.rounds[0].beacon is None
        assert all(outcome.is_audited(0, name) for name in (*HONEST, CHEAT))


class TestSilentMember(OneBadMember):
    """`few`, `reveal-others` and `withhold-verdict`."""

    scenario = job("few+reveal-others+withhold-verdict")
    faults = paid_for("FALSEHOOD", "SILENCE")

    def test_it_loses_its_stake(self, outcome):
        assert outcome.lost_wei(BAD) == STAKE


class TestFramingMember(OneBadMember):
    """`frame` in rolls and audits, and `sums`."""

    scenario = job("frame+sums")
    faults = paid_for("FALSEHOOD")

    def test_it_loses_its_stake(self, outcome):
        assert outcome.lost_wei(BAD) == STAKE


class TestCopyingMember(OneBadMember):
    """`copy` and `split`: its client answers to it alone, and it tells nobody.

    `high-s`: what it says otherwise, nobody can use.
    """

    scenario = job("copy+high-s", "amplify:10+split")
    faults = paid_for("ABSENCE")
    outcome_of_cheat = UNANSWERED

    def test_it_pays_for_its_absence(self, outcome):
        assert outcome.lost_wei(BAD) == STAKE // 5


class TestLeakingMember(OneBadMember):
    """`leak`: it shifts its answers by a guess, reveals none, and wants another session.

    It refuses deliveries as well, and gets them from its peers.
    """

    scenario = job("leak+refuse-deliveries")
    faults = paid_for("ABSENCE")

    def test_there_is_no_second_session_on_honest_clients(self, outcome):
        assert {name for _, name in outcome.held()} == {CHEAT}


class TestAbsentMember(OneBadMember):
    """`skip-audits` where members replay inside MPC: nobody can be replayed in that round."""

    scenario = job("skip-audits", audit="guided")
    faults = paid_for("ABSENCE", "SILENCE")


class TestLiarInMpc(OneBadMember):
    """What a member can do to replays inside MPC without leaving its protocol."""

    scenario = job("equivocate+withhold-beacon+sums+lie", audit="guided")
    faults = paid_for("EQUIVOCATION", "WITHHELD", "FALSEHOOD", "DISSENT")


def test_every_attack_of_a_member_is_played():
    jobs = (
        TestLiar, TestSilentMember, TestFramingMember, TestCopyingMember, TestLeakingMember,
        TestAbsentMember,
    )  # fmt: skip
    played = {name for each in jobs for name in each.scenario.plan.members[0].split("+")}
    assert played == set(MEMBERS.names())
