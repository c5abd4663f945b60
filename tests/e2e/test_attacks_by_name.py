"""Attacks of the catalogue that no other job plays, and that none is forgotten."""

from typing import ClassVar

import pytest
import test_cheating_clients
import test_cheating_members
from named_attacks import NamedAttacks, is_played_in, job_with

from opfl_chain.bench.attacks.catalogue import ATTACKS
from opfl_chain.chain.terms import STAKE

BAD = "member-0"


class TestUnreadableMember(NamedAttacks):
    """Nobody can use its signatures, and the server serves no models."""

    attacks = ("high-s member", "late list")
    scenario = job_with(*attacks, rounds=1)
    faults: ClassVar[dict[str, set[str]]] = {BAD: {"ABSENCE"}}

    def test_it_pays_for_every_absence(self, outcome):
        assert outcome.lost_wei(BAD) == len(outcome.penalties()) * (STAKE // 5) > 0


class TestIdleStrangers(NamedAttacks):
    attacks = ("idle connections",)
    scenario = job_with(*attacks, rounds=1)


class TestForkWithLyingNode(NamedAttacks):
    """The round that the fork voids is lost, as it is deeper than the confirmations."""

    attacks = ("reorg", "oracle")
    scenario = job_with(*attacks)
    void = frozenset({0})


JOBS = [
    found
    for found in (
        *vars(test_cheating_clients).values(),
        *vars(test_cheating_members).values(),
        TestUnreadableMember,
        TestIdleStrangers,
        TestForkWithLyingNode,
    )
    if isinstance(found, type) and issubclass(found, NamedAttacks) and "scenario" in vars(found)
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_every_known_attack_is_played_by_name(attack):
    jobs = [job for job in JOBS if attack.name in job.attacks]
    assert jobs
    assert all(is_played_in(attack, job.scenario) for job in jobs)
