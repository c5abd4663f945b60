"""Jobs in which attacks of the catalogue are played, several in one where none disturbs another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from expectations import EveryJob
from scenario import Played, Scenario

from opfl_chain.adversaries.clients import JOINED_BY
from opfl_chain.bench.attacks.catalogue import HONEST, PlayedAttack, attacks_called
from opfl_chain.bench.attacks.disturbances import Disturbance
from opfl_chain.bench.attacks.rows import revealed, row_of
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.plan import Plan

KIND = "proved"


def called(name: str) -> PlayedAttack:
    return attacks_called([name], KIND)[0]


class Together(Disturbance):
    """The disturbances of several attacks."""

    def __init__(self, net: Localnet, kinds: Sequence[Callable[[Localnet], Disturbance]]) -> None:
        super().__init__(net)
        self.parts = [kind(net) for kind in kinds]

    def __call__(self):
        for part in self.parts:
            part()

    def close(self):
        for part in self.parts:
            part.close()

    @property
    def told(self):
        return "; ".join(filter(None, (part.told for part in self.parts)))

    @property
    def took_place(self):
        return all(part.took_place for part in self.parts)


@dataclass(frozen=True)
class Disturbances:
    """Starts disturbances of these kinds in a job."""

    kinds: tuple[Callable[[Localnet], Disturbance], ...]

    def __call__(self, net: Localnet) -> Together:
        return Together(net, self.kinds)


def job_with(*names: str, rounds: int | None = None) -> Scenario:
    """Plan one job in which all of these attacks are played, for as long as the longest takes."""
    attacks = [called(name) for name in names]
    cheats = dict.fromkeys(cheat for each in attacks for cheat in each.clients if cheat)
    plans = [each.plan(KIND) for each in attacks]
    plan = replace(
        plans[0],
        clients=(*HONEST, *(cheats or [None])),
        members=(next((each.member for each in attacks if each.member), None), None, None),
        server=next((each.server for each in attacks if each.server), None),
        rounds=rounds or max(each.rounds for each in plans),
    )
    return Scenario(plan, Disturbances(tuple(each.disturbance for each in attacks)))


def is_played_in(attack: PlayedAttack, scenario: Scenario) -> bool:
    """Return whether a job has all that attacks, audits everybody and proves its steps."""
    plan, meanwhile = scenario.plan, scenario.meanwhile
    kinds = meanwhile.kinds if isinstance(meanwhile, Disturbances) else ()
    return (
        all(_client(cheat, plan) is not None for cheat in attack.clients if cheat)
        and (attack.member is None or attack.member in _cheats(plan.members[0]))
        and attack.server in (None, plan.server)
        and attack.disturbance in (Disturbance, *kinds)
        and (plan.audit, plan.audit_rate) == (KIND, 1.0)
    )


def as_played(attack: PlayedAttack, plan: Plan, void: int) -> PlayedAttack:
    """The attack with everybody else who cheats in its job; rounds may be void by another one."""
    places = {f"client-{i}": _client(cheat, plan) for i, cheat in enumerate(attack.clients)}
    return replace(
        attack,
        clients=plan.clients,
        member=plan.members[0],
        server=plan.server,
        attackers=tuple(str(places.get(name, name)) for name in attack.attackers),
        unnamed=tuple(str(places.get(name, name)) for name in attack.unnamed),
        rounds=plan.rounds,
        spoils=void,
    )


def _client(cheat: str | None, plan: Plan) -> str | None:
    """The client with a cheat, which may deliver falsely as well."""
    for i, each in enumerate(plan.clients):
        if cheat and each and (each == cheat or each.startswith(cheat + JOINED_BY)):
            return f"client-{i}"
    return None


def _cheats(member: str | None) -> list[str]:
    return member.split(JOINED_BY) if member else []


class NamedAttacks(EveryJob):
    """A job that plays attacks of the catalogue: each has a test by its name."""

    attacks: ClassVar[tuple[str, ...]]

    def test_attack_fails(self, played: Played, attack_name: str) -> None:
        """By the same criteria as in `opfl bench attacks`."""
        named = called(attack_name)
        assert is_played_in(named, played.scenario)
        attack = as_played(named, played.scenario.plan, len(self.void))
        row = row_of(
            attack,
            KIND,
            played.outcome,
            revealed(played.folder, attack),
            told=played.told,
            took_place=played.took_place,
        )
        assert row.failures == [], row.outcome
