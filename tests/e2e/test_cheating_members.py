"""One member breaks the protocol, in every known way: it changes nothing, and pays."""

from dataclasses import replace

from expectations import EveryJob
from named_attacks import NamedAttacks
from scenario import Scenario

from opfl_chain.adversaries.members import MEMBERS
from opfl_chain.chain.terms import DEPOSIT, STAKE
from opfl_chain.jobs.localnet.outcome import ACQUITTED, OUTSIDE, PASSED, UNANSWERED
from opfl_chain.jobs.localnet.plan import PHASES

HONEST = ("client-0", "client-1", "client-2")
CHEAT = "client-3"
BAD = "member-0"


def job(bad, attack="amplify:10", audit="proved", rounds=2, phases=PHASES):
    """Plan a job in which everyone is audited and the first member is bad."""
    return Scenario.of(
        clients=(None, None, None, attack),
        members=bad if isinstance(bad, tuple) else (bad, None, None),
        rounds=rounds,
        audit_rate=1.0,
        audit=audit,
        phases=phases,
    )


def paid_for(*faults):
    """Expect that the bad member pays for these, and nobody else for anything."""
    return {BAD: set(faults)}


class OneBadMember(EveryJob):
    """Attacks in different duties do not disturb each other, so that one member plays several."""

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(t, name) for t in (0, 1) for name in HONEST] == [PASSED] * 6

    def test_cheat_is_charged_in_full(self, outcome):
        assert outcome.charged() == {(0, CHEAT): OUTSIDE}
        assert outcome.lost_wei(CHEAT) == DEPOSIT

    def test_standby_takes_the_seat_of_the_member_at_fault(self, outcome):
        assert outcome.seat_changes() == [(BAD, "standby-0")]

    def test_honest_members_attest_in_every_round(self, outcome):
        for number in (0, 1):
            assert set(outcome.seats(number)) - {BAD} <= outcome.attested(number)


class TestLiar(OneBadMember, NamedAttacks):
    """`equivocate`, `withhold-beacon`, `flip` and `lie`, each in its phase."""

    attacks = ("equivocate", "flip")
    scenario = job("equivocate+withhold-beacon+flip+lie")
    faults = paid_for("EQUIVOCATION", "WITHHELD", "FALSEHOOD", "DISSENT")

    def test_it_loses_its_stake(self, outcome):
        assert outcome.lost_wei(BAD) == STAKE

    def test_standby_serves_in_the_second_round(self, outcome):
        assert outcome.seats(1) == ("standby-0", "member-1", "member-2")
        assert outcome.attested(1) == set(outcome.seats(1))

    def test_published_answers_name_it(self, played):
        report = played.check_published("member-1")
        assert report.first_failure is None
        assert any(played.outcome.address(BAD) in note for note in report.notes)

    def test_without_a_beacon_everybody_is_audited(self, outcome):
        assert outcome.history.rounds[0].beacon is None
        assert all(outcome.is_audited(0, name) for name in (*HONEST, CHEAT))


class TestSilentMember(OneBadMember, NamedAttacks):
    """`few`, `reveal-others` and `withhold-verdict`."""

    attacks = ("few",)
    scenario = job("few+reveal-others+withhold-verdict")
    faults = paid_for("FALSEHOOD", "SILENCE")

    def test_it_loses_its_stake(self, outcome):
        assert outcome.lost_wei(BAD) == STAKE


class TestFramingMember(OneBadMember, NamedAttacks):
    """`frame`, `sums`, `hang`, which answers no peer, and `split`, which sides with its client."""

    attacks = ("frame", "sums", "split")
    scenario = job("frame+sums+lie+hang", "amplify:10+split")
    faults = paid_for("FALSEHOOD", "DISSENT")

    def test_cheat_is_charged_in_full(self, outcome):
        """Its client answers to it alone, and it gives the answer to nobody."""
        assert outcome.charged() == {(0, CHEAT): UNANSWERED}
        assert outcome.lost_wei(CHEAT) == DEPOSIT

    def test_it_loses_its_stake(self, outcome):
        assert outcome.lost_wei(BAD) == STAKE


class TestCopyingMember(OneBadMember, NamedAttacks):
    """`copy`: its client answers to it alone, and the others fetch the answer."""

    attacks = ("copy",)
    scenario = job("copy", "amplify:10+split")
    faults = paid_for("ABSENCE")

    def test_it_pays_for_every_absence(self, outcome):
        assert outcome.lost_wei(BAD) == len(outcome.penalties()) * (STAKE // 5) > 0


class TestLeakingMember(OneBadMember, NamedAttacks):
    """`leak`: it shifts its answers by a guess, reveals none, and wants another session.

    It refuses deliveries as well, and gets them from its peers.
    """

    attacks = ("leak",)
    scenario = job("leak+refuse-deliveries")
    faults = paid_for("ABSENCE")

    def test_there_is_no_second_session_on_honest_clients(self, outcome):
        assert {name for _, name in outcome.held()} == {CHEAT}


class TestAbsentMember(OneBadMember):
    """`skip-audits` where members replay inside MPC, which takes all three.

    With `high-s` nobody can use what it says otherwise either.
    Nobody can be replayed before the verdict. While all audits are held nobody can contribute, so
    the next two rounds are void. The hearing that began with the absent member ends meanwhile; the
    next one is among those who have seats then, and replays what was left.
    """

    scenario = job("skip-audits+high-s", audit="guided", rounds=4)
    faults = paid_for("ABSENCE", "SILENCE")
    void = frozenset({1, 2})
    away = frozenset((t, name) for t in (1, 2) for name in HONEST)

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(0, name) for name in HONEST] == [ACQUITTED] * 3
        assert [outcome.verdict(3, name) for name in HONEST] == [PASSED] * 3

    def test_honest_members_attest_in_every_round(self, outcome):
        assert outcome.attested(0) == {"member-1", "member-2"}
        assert outcome.attested(3) == {"standby-0", "member-1", "member-2"}


class TestAbsentMemberInTheLastRound(OneBadMember):
    """The job is closed before the standby has the seat, and its deposits wait for the audits."""

    scenario = job("skip-audits", audit="guided", rounds=1)
    faults = paid_for("ABSENCE", "SILENCE")

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(0, name) for name in HONEST] == [ACQUITTED] * 3

    def test_honest_members_attest_in_every_round(self, outcome):
        assert {"member-1", "member-2"} <= outcome.attested(0)


class TestMemberThatBreaksMeetings(OneBadMember):
    """`break-meetings` inside MPC, by the suspect that is the last to go.

    Nothing is replayed and nobody contributes while it has a seat. Then those who had the other
    seats meet with the standby, one of them in another seat than before, and audits end.
    """

    # The last audit ends in the middle of a void round, so that some blocks more or less are alike.
    phases = replace(PHASES, deliver=25)
    scenario = job((None, None, "break-meetings"), audit="guided", rounds=5, phases=phases)
    void = frozenset({1, 2, 3})
    away = frozenset((t, name) for t in (1, 2, 3) for name in HONEST)

    def test_standby_takes_the_seat_of_the_member_at_fault(self, outcome):
        """Suspects leave, one after every meeting, and the one that was in all of them last."""
        assert outcome.seat_changes() == [
            ("member-0", "standby-0"),
            ("member-1", "member-0"),
            ("member-2", "member-1"),
        ]

    def test_honest_work_passes(self, outcome):
        assert [outcome.verdict(0, name) for name in HONEST] == [ACQUITTED] * 3
        assert [outcome.verdict(4, name) for name in HONEST] == [PASSED] * 3

    def test_it_earns_nothing_after_its_third_meeting(self, outcome):
        assert "member-2" not in outcome.seats(4)
        assert outcome.lost_wei("member-2") == 0

    def test_honest_members_attest_in_every_round(self, outcome):
        assert outcome.attested(4) == {"standby-0", "member-0", "member-1"}


class TestLiarInMpc(OneBadMember):
    """Changes that a member can make to replays inside MPC without leaving its protocol."""

    scenario = job("equivocate+withhold-beacon+sums+lie", audit="guided")
    faults = paid_for("EQUIVOCATION", "WITHHELD", "FALSEHOOD", "DISSENT")


def test_every_attack_of_a_member_is_played():
    jobs = (
        TestLiar, TestSilentMember, TestFramingMember, TestCopyingMember, TestLeakingMember,
        TestAbsentMember, TestMemberThatBreaksMeetings,
    )  # fmt: skip
    cheats = {cheat for each in jobs for cheat in each.scenario.plan.members if cheat}
    played = {name for cheat in cheats for name in cheat.split("+")}
    assert played == set(MEMBERS.names())
