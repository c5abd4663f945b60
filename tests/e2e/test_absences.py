"""Daemons that are killed, and clients that are away while they are audited."""

from expectations import EveryJob
from scenario import Scenario

from opfl_chain.bench.attacks.disturbances import Disturbance
from opfl_chain.chain.bindings import events
from opfl_chain.chain.terms import DEPOSIT
from opfl_chain.jobs.localnet.outcome import ACQUITTED, OUTSIDE, PASSED, UNANSWERED

CLIENTS = ("client-0", "client-1", "client-2", "client-3", "client-4")
IN_TIME, TOO_LATE = "client-0", "client-1"
STAYING = CLIENTS[2:]


class AwayDuringAudit(Disturbance):
    """Two clients die when they are on the roll and before the beacon audits them."""

    def __init__(self, net):
        super().__init__(net)
        self.returned: list[str] = []

    def __call__(self):
        round_ = self._net.view.round(0)
        if round_ is None or round_.roll is None or round_.seed is not None:
            return
        head = self._net.devnet.rpc.block_number()
        back = {IN_TIME: round_.schedule.attest + 2, TOO_LATE: round_.schedule.response + 2}
        for name, block in back.items():
            if self._net.daemons[name].started:
                self._net.kill(name, block - head, lambda name=name: self.returned.append(name))


class TestAwayDuringAudit(EveryJob):
    scenario = Scenario.of(
        AwayDuringAudit, clients=(None,) * 5, rounds=2, audit_rate=1.0, audit="proved"
    )
    away = frozenset({(1, IN_TIME), (1, TOO_LATE)})

    def test_honest_clients_lose_nothing(self, played, outcome):
        lost = {name: outcome.lost_wei(name) for name in CLIENTS}
        assert lost == {**dict.fromkeys(CLIENTS, 0), TOO_LATE: DEPOSIT}

    def test_both_came_back(self, played):
        assert played.meanwhile.returned == [IN_TIME, TOO_LATE]

    def test_who_answers_within_the_response_window_is_acquitted(self, outcome):
        assert outcome.verdict(0, IN_TIME) == ACQUITTED
        assert outcome.acquitted() == {(0, IN_TIME)}

    def test_who_does_not_is_charged(self, outcome):
        assert outcome.charged() == {(0, TOO_LATE): UNANSWERED}

    def test_others_are_not_held_up(self, outcome):
        assert [outcome.verdict(t, name) for t in (0, 1) for name in STAYING] == [PASSED] * 6


WITHHOLDING, CHEATING = "client-3", "client-4"
ABSENT_MEMBERS = ("member-1", "member-2")


class CommitteeAway(Disturbance):
    """Two members die when all have attested, and are back after the response window.

    A client dies before the beacon audits it, and is back while one member alone can hear it.
    """

    def __init__(self, net):
        super().__init__(net)
        self.returned: dict[str, int] = {}

    def __call__(self):
        round_ = self._net.view.round(0)
        if round_ is None or round_.roll is None:
            return
        if round_.seed is None:
            self._kill(IN_TIME, round_.schedule.attest + 2)
        if len(self._net.view.attestations(round_.id)) == 3 and round_.over is None:
            for name in ABSENT_MEMBERS:
                self._kill(name, round_.schedule.response + 2)

    def _kill(self, name, back):
        net = self._net
        if net.daemons[name].started and name not in self.returned:
            head = net.devnet.rpc.block_number()
            net.kill(name, back - head, lambda: self.returned.update({name: back}))


class TestSlowCommittee(EveryJob):
    """It delays charges and forgives nobody."""

    scenario = Scenario.of(
        CommitteeAway,
        clients=(None, None, None, "withhold-answer", "amplify:10"),
        rounds=1,
        audit_rate=1.0,
        audit="proved",
    )

    def test_job_ends_with_all_of_its_rounds(self, outcome):
        """The moment decides if the sum was opened before the members died."""
        assert outcome.rounds == 1

    def test_all_came_back(self, played):
        assert set(played.meanwhile.returned) == {IN_TIME, *ABSENT_MEMBERS}

    def test_nothing_is_decided_while_two_members_are_away(self, played, outcome):
        back = min(played.meanwhile.returned[name] for name in ABSENT_MEMBERS)
        decided = (events.ClientCharged, events.ClientAcquitted)
        blocks = [each.block for kind in decided for each in outcome.trail.of(kind)]
        assert len(blocks) == 3 and min(blocks) > back

    def test_who_cheated_or_withheld_pays_in_full(self, outcome):
        assert outcome.charged() == {(0, WITHHOLDING): UNANSWERED, (0, CHEATING): OUTSIDE}
        assert [outcome.lost_wei(name) for name in (WITHHOLDING, CHEATING)] == [DEPOSIT] * 2

    def test_who_answered_the_only_member_that_was_there_is_acquitted(self, outcome):
        assert outcome.acquitted() == {(0, IN_TIME)}


KILLS = {
    (0, "open"): ("member-0", "client-0"),
    (0, "roll"): ("member-1", "server"),
    (0, "seed"): ("member-2", "client-1"),
    (1, "open"): ("server", "standby-0"),
    (1, "roll"): ("client-2", "member-0"),
    (1, "seed"): ("member-1",),
    (1, "decided"): ("member-2", "client-0"),
}
"""Daemons that are killed when a round has come so far."""
ABSENT_BLOCKS = 2


class Killed(Disturbance):
    def __init__(self, net):
        super().__init__(net)
        self.done: set[tuple[int, str]] = set()

    def __call__(self):
        round_ = self._net.view.latest_round()
        if round_ is None or round_.over is not None:
            return
        stage = "open"
        for name, reached in (
            ("roll", round_.roll),
            ("seed", round_.seed),
            ("decided", round_.verdict_hash),
        ):
            stage = name if reached is not None else stage
        place = (round_.number, stage)
        if place in KILLS and place not in self.done:
            self.done.add(place)
            for name in KILLS[place]:
                self._net.kill(name, ABSENT_BLOCKS)


class TestKilledDaemons(EveryJob):
    scenario = Scenario.of(
        Killed, clients=(None, None, None), rounds=2, audit_rate=1.0, audit="guided"
    )

    def test_everyone_was_killed(self, played):
        assert played.meanwhile.done == set(KILLS)

    def test_everybody_passes_in_every_round(self, outcome):
        verdicts = {outcome.verdict(t, name) for t in (0, 1) for name in CLIENTS[:3]}
        assert verdicts == {PASSED}

    def test_nobody_loses_a_seat(self, outcome):
        assert outcome.seat_changes() == []
