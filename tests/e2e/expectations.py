"""Expectations for the end of every job, whoever cheated and whatever happened meanwhile."""

from typing import ClassVar

import pytest
from scenario import Played, Scenario, play

from opfl_chain.chain.terms import DEPOSIT, PAY
from opfl_chain.jobs.localnet.outcome import OUTSIDE, PASSED, UNANSWERED


class EveryJob:
    """A class of tests over one job, which is played once for all of them."""

    scenario: Scenario
    faults: ClassVar[dict[str, set[str]]] = {}
    """The faults that each member pays for."""
    away: ClassVar[frozenset[tuple[int, str]]] = frozenset()
    """Rounds and honest clients that are not on the roll."""
    void: ClassVar[frozenset[int]] = frozenset()
    """Rounds without a result."""

    @pytest.fixture(scope="class")
    def played(self, request, tmp_path_factory, one_at_a_time, template) -> Played:
        with one_at_a_time():
            return play(request.cls.scenario, tmp_path_factory.mktemp("job"), template)

    @pytest.fixture
    def outcome(self, played):
        return played.outcome

    def test_job_ends_with_all_of_its_rounds(self, played, outcome):
        assert outcome.rounds == played.scenario.plan.rounds
        final = {number for number in range(outcome.rounds) if outcome.is_final(number)}
        assert final == set(range(outcome.rounds)) - self.void

    def test_balances_are_conserved_to_the_wei(self, outcome):
        assert outcome.unaccounted_wei == 0
        assert outcome.unowed_wei == 0

    def test_trail_verifies_from_the_chain_alone(self, outcome):
        assert outcome.report.first_failure is None

    def test_honest_clients_lose_nothing(self, played, outcome):
        lost = {name: outcome.lost_wei(name) for name in played.honest_clients}
        assert lost == dict.fromkeys(played.honest_clients, 0)

    def test_honest_members_lose_nothing(self, played, outcome):
        lost = {name: outcome.lost_wei(name) for name in played.honest_members}
        assert lost == dict.fromkeys(played.honest_members, 0)

    def test_honest_clients_are_on_every_roll(self, played, outcome):
        everywhere = {(t, name) for t in range(outcome.rounds) for name in played.honest_clients}
        present = {(t, name) for t, name in everywhere if name in outcome.participants(t)}
        assert everywhere - present == self.away

    def test_accepted_contributions_and_agreed_verdicts_are_paid(self, played, outcome):
        rounds = range(outcome.rounds)
        for name in played.honest_clients:
            accepted = sum(outcome.verdict(number, name) == PASSED for number in rounds)
            assert outcome.earned_wei(name) == PAY.client * accepted
        for name in played.honest_members:
            served = sum(name in outcome.attested(number) for number in rounds)
            assert outcome.earned_wei(name) == PAY.member * served

    def test_audited_attacks_cost_the_whole_deposit(self, played, outcome):
        for place in played.audited_attacks:
            assert outcome.charged().get(place) in (OUTSIDE, UNANSWERED), place
            assert outcome.lost_wei(place[1]) == DEPOSIT, place

    def test_members_pay_for_their_own_faults_only(self, outcome):
        paid: dict[str, set[str]] = {}
        for (_, name), faults in outcome.penalties().items():
            paid.setdefault(name, set()).update(faults)
        assert paid == self.faults
