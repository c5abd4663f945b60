"""Expectations for the end of every job, whoever cheated and whatever happened meanwhile."""

import pytest
from scenario import Played, Scenario, play


class EveryJob:
    """A class of tests over one job, which is played once for all of them."""

    scenario: Scenario

    @pytest.fixture(scope="class")
    def played(self, request, tmp_path_factory, one_at_a_time) -> Played:
        with one_at_a_time():
            return play(request.cls.scenario, tmp_path_factory.mktemp("job"))

    @pytest.fixture
    def outcome(self, played):
        return played.outcome

    def test_job_ends_with_all_of_its_rounds(self, played, outcome):
        assert outcome.rounds == played.scenario.plan.rounds
        assert [outcome.is_final(number) for number in range(outcome.rounds)] == (
            [True] * outcome.rounds
        )

    def test_balances_are_conserved_to_the_wei(self, outcome):
        assert outcome.unaccounted_wei == 0

    def test_trail_verifies_from_the_chain_alone(self, outcome):
        assert outcome.report.first_failure is None

    def test_honest_clients_lose_nothing(self, played, outcome):
        lost = {name: outcome.lost_wei(name) for name in played.honest_clients}
        assert lost == dict.fromkeys(played.honest_clients, 0)

    def test_honest_members_lose_nothing(self, played, outcome):
        lost = {name: outcome.lost_wei(name) for name in played.honest_members}
        assert lost == dict.fromkeys(played.honest_members, 0)

    def test_honest_clients_are_in_every_round(self, played, outcome):
        for number in range(outcome.rounds):
            assert set(played.honest_clients) <= outcome.participants(number)
