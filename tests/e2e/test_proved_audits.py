"""Jobs whose clients prove their steps: cheats are slashed, and no member can turn a verdict."""

import pytest
from changing_cheats import ChangingCheats
from expectations import EveryJob
from scenario import Meanwhile, Scenario

from opfl_chain.bench.tampering.daemons import leak_events
from opfl_chain.chain.terms import DEPOSIT, STAKE
from opfl_chain.jobs.localnet.outcome import LEFT_OUT, PASSED
from opfl_chain.trail import check_published

HONEST = ("client-0", "client-1")
CHEAT = "amplify:10"
FORGER = "forge"
BAD = "member-2"
ABORTING = ("flip", "reveal-others", "frame")
"""Lies about answers or deliveries: a round each."""
ALL = (*HONEST, "client-2", "client-3")
SILENT = "answer-nothing"


class KillsMembers(Meanwhile):
    """Kills a member in every round while it audits, and another one when it is decided."""

    def __init__(self, net):
        super().__init__(net)
        self.killed: list[tuple[int, str]] = []

    def __call__(self):
        round_ = self._net.view.latest_round()
        if round_ is None or round_.over is not None or round_.seed is None:
            return
        decided = round_.verdict_hash is not None
        name = f"member-{(round_.number + decided) % 3}"
        if (round_.number, name) not in self.killed and self._net.daemons[name].alive:
            self.killed.append((round_.number, name))
            self._net.kill(name, 2)


class TestProvedJob(EveryJob):
    scenario = Scenario.of(
        KillsMembers,
        clients=(None, None, CHEAT, FORGER),
        rounds=2,
        audit_rate=1.0,
        audit="proved",
    )

    def test_members_were_killed(self, played):
        assert len(played.meanwhile.killed) >= 2

    def test_honest_clients_pass_every_audit(self, outcome):
        found = [outcome.verdict(number, name) for number in (0, 1) for name in HONEST]
        assert found == [PASSED] * 4

    def test_cheats_are_slashed_at_their_first_audit(self, played, outcome):
        cheats = [played.client(cheat) for cheat in (CHEAT, FORGER)]
        assert outcome.executed() == {(0, cheat): "REPLAY_OUTSIDE" for cheat in cheats}
        assert [outcome.lost_wei(cheat) for cheat in cheats] == [DEPOSIT] * 2

    def test_members_exchange_kilobytes(self, played):
        ended = [e for e in played.events("member-0") if e["event"] == "ended"]
        assert "mpc_bytes_sent" not in ended[-1]

    @pytest.mark.parametrize("rank", range(3))
    def test_verdicts_follow_from_the_published_answers(self, played, outcome, rank):
        path = played.folder / "state" / f"member-{rank}" / "answers.jsonl"
        report = check_published(outcome.trail, [path])
        assert report.first_failure is None
        assert report.facts["signed answers"] > 6


class TestLeakingMember(EveryJob):
    """`leak`: it shifts its answers by a guess, aborts, and tries again with another one."""

    scenario = Scenario.of(
        clients=(None, None, CHEAT, FORGER),
        members=(None, None, "leak"),
        rounds=2,
        audit_rate=1.0,
        audit="proved",
        score=False,
    )

    @pytest.fixture
    def runs(self, played, outcome):
        """What each run showed the attacker, by contribution."""
        names = {outcome.client_index(name): name for name in ALL}
        found = {}
        for event in leak_events(played.folder):
            place = event["round"], names[event["client"]]
            found.setdefault(place, {})[event["run"]] = event
        return found

    def test_it_ran_twice_on_every_contribution(self, runs):
        assert runs.keys() == {(number, name) for number in (0, 1) for name in ALL}
        assert all(each.keys() == {1, 2} for each in runs.values())

    def test_uncompared_the_verdict_would_tell_which_guess_is_right_or_save_the_cheat(self, runs):
        for each in runs.values():
            assert [each[run]["accepted_uncompared"] for run in (1, 2)] == [False, True]

    def test_one_opening_of_a_contribution_whatever_the_guess_and_the_secret(self, runs):
        for each in runs.values():
            assert each[1]["revealed"] == each[2]["revealed"]

    def test_no_verdict_whatever_the_guess_and_the_secret(self, outcome):
        found = [outcome.verdict(number, name) for number in (0, 1) for name in ALL]
        assert found == [LEFT_OUT] * 8
        assert outcome.executed() == {}

    def test_honest_members_agree_and_name_the_attacker_alone(self, played, outcome):
        liar = outcome.address(BAD)
        for name in ("member-0", "member-1"):
            disputes = [e for e in played.events(name) if e["event"] == "disputed audit"]
            assert {event["round"] for event in disputes} == {0, 1}
            assert {tuple(event["members"]) for event in disputes} == {(liar,)}
            assert all(name in outcome.attested(number) for number in (0, 1))


class Lies(ChangingCheats):
    def __init__(self, net):
        super().__init__(net, BAD, (*ABORTING, SILENT))


class TestLyingMember(EveryJob):
    scenario = Scenario.of(
        Lies,
        clients=(None, None, CHEAT),
        members=(None, None, ABORTING[0]),
        rounds=len(ABORTING) + 1,
        audit_rate=1.0,
        audit="proved",
        score=False,
    )

    @pytest.mark.parametrize("number", range(len(ABORTING) + 1))
    def test_neither_an_honest_client_is_charged_nor_the_cheat_saved(self, played, outcome, number):
        names = (*HONEST, played.client(CHEAT))
        assert [outcome.verdict(number, name) for name in names] == [LEFT_OUT] * 3
        assert outcome.executed() == {}

    @pytest.mark.parametrize("number", range(len(ABORTING)))
    def test_honest_members_agree(self, outcome, number):
        assert {"member-0", "member-1"} <= outcome.attested(number)

    def test_log_names_the_liar_or_the_pair(self, played):
        liar = played.outcome.address(BAD)
        disputes = [
            event
            for name in ("member-0", "member-1")
            for event in played.events(name)
            if event["event"] == "disputed audit"
        ]
        assert {event["round"] for event in disputes} >= {0, 1}
        assert all(liar in event["members"] for event in disputes)
        alone = [event for event in disputes if event["members"] == [liar]]
        assert {event["round"] for event in alone} >= {1}, "a broken commitment names its member"

    def test_silence_costs_the_silent_member_at_most_its_penalty(self, outcome):
        assert outcome.lost_wei(BAD) <= STAKE
