"""The attacks, each as the plan of a job: who takes part, who attacks, what happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opfl_chain.bench.attacks.disturbances import Disturbance, Fork, IdleStrangers, LyingNode
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.plan import Plan

CHEAT: Final = "amplify:10"
"""A client that commits to ten times its gradient."""
HONEST: Final = (None, None, None)


@dataclass(frozen=True)
class InsideMpc:
    """Differences where members replay steps inside MPC."""

    why: str
    works: bool = False
    """The attack works there: audits inside MPC assume that members follow its protocol."""
    rounds: int = 2
    spoils: int = 0
    """Rounds that are void because audits inside MPC need all three seats."""
    unnamed: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlayedAttack:
    """One attack. Every contribution is audited, so that nothing depends on the beacon."""

    name: str
    actors: str
    """The attackers, in words."""
    clients: tuple[str | None, ...] = (*HONEST, CHEAT)
    member: str | None = None
    """The cheat of the member in seat 0."""
    server: str | None = None
    disturbance: Callable[[Localnet], Disturbance] = Disturbance
    rounds: int = 2
    attackers: tuple[str, ...] = ("member-0",)
    """The participants that attack; a member attacks beside a client that cheats on its own."""
    unnamed: tuple[str, ...] = ()
    """Attackers whom nothing shows to be at fault. All others must lose money."""
    remark: str = ""
    """The attack that is played, where it is not the one on version 1 itself."""
    spoils: int = 0
    """Rounds that it can void: a fork that is deeper than `confirmations`."""
    works: bool = False
    """It is known to work on this kind of audits, as SECURITY.md says."""
    inside_mpc: InsideMpc | None = None

    def on(self, kind: str) -> PlayedAttack:
        """The attack as it is played on a kind of audits."""
        if kind == "proved" or self.inside_mpc is None:
            return self
        there = self.inside_mpc
        return replace(
            self,
            works=there.works,
            rounds=there.rounds,
            spoils=there.spoils,
            unnamed=self.unnamed + there.unnamed,
            remark=there.why,
        )

    def plan(self, kind: str) -> Plan:
        return Plan(
            clients=self.clients,
            members=(self.member, None, None),
            server=self.server,
            rounds=self.rounds,
            audit_rate=1.0,
            audit=kind,
            dataset="synthetic",
            score=False,
        )

    @property
    def accomplices(self) -> tuple[str, ...]:
        """The cheats of the clients that take part in the attack."""
        cheats = enumerate(self.clients)
        return tuple(cheat for i, cheat in cheats if cheat and f"client-{i}" in self.attackers)

    @property
    def honest(self) -> list[str]:
        """The participants that do what they should."""
        clients = [f"client-{i}" for i, cheat in enumerate(self.clients) if cheat is None]
        members = ["member-0"] if self.member is None else []
        return [*clients, *members, "member-1", "member-2", "standby-0"]


_CLIENT: Final = ("client-3",)
_NOBODY: Final = ()

ATTACKS: Final = (
    PlayedAttack("evade", "one client", (*HONEST, f"{CHEAT}+evade"), attackers=_CLIENT),
    PlayedAttack(
        "withhold", "one client", (*HONEST, f"{CHEAT}+withhold-answer"), attackers=_CLIENT
    ),
    PlayedAttack(
        "high-s client",
        "two clients",
        (*HONEST, f"{CHEAT}+high-s", f"{CHEAT}+high-s-answer"),
        attackers=("client-3", "client-4"),
        unnamed=_CLIENT,
        remark="one client signs everything with high s, the other its answer only",
    ),
    PlayedAttack("high-s member", "one member", member="high-s"),
    PlayedAttack(
        "frame",
        "one member",
        member="frame",
        inside_mpc=InsideMpc(
            "a complaint that does not stand changes nothing, and costs nothing there",
            unnamed=("member-0",),
        ),
    ),
    PlayedAttack("equivocate", "one member", member="equivocate"),
    PlayedAttack(
        "flip",
        "one member",
        member="flip",
        inside_mpc=InsideMpc(
            "it changes one bit of the last message of the circuit, in both replays", works=True
        ),
    ),
    PlayedAttack(
        "leak",
        "one member",
        member="leak",
        inside_mpc=InsideMpc(
            "it makes the bit opened on every contribution a secret bit of its input, and follows"
            " the protocol in the second replay",
            works=True,
        ),
    ),
    PlayedAttack(
        "few",
        "one member and one client",
        member="few",
        attackers=("member-0", *_CLIENT),
        unnamed=("member-0",),
        remark="a list that leaves clients out shows no fault, and the lists of both others count",
    ),
    PlayedAttack(
        "copy",
        "one member",
        member="copy",
        inside_mpc=InsideMpc(
            "replays need all three seats: what is held is replayed by the standby, and meanwhile"
            " nobody can contribute",
            rounds=3,
            spoils=1,
        ),
    ),
    PlayedAttack(
        "split",
        "one member and one client",
        (*HONEST, f"{CHEAT}+split"),
        "lie",
        attackers=("member-0", *_CLIENT),
    ),
    PlayedAttack("sums", "one member", member="sums"),
    PlayedAttack(
        "late list",
        "server",
        (*HONEST, None),
        server="late-model",
        attackers=_NOBODY,
        remark="the server relays nothing any more; it withholds models instead",
    ),
    PlayedAttack(
        "hide",
        "server and one client",
        (*HONEST, f"{CHEAT}+withhold-answer"),
        server="idle",
        attackers=_CLIENT,
        remark="the server has nothing to reveal any more; it opens and ends no round, and its"
        " client answers no audit",
    ),
    PlayedAttack(
        "reorg",
        "the chain",
        (*HONEST, None),
        disturbance=Fork,
        rounds=3,
        attackers=_NOBODY,
        spoils=1,
    ),
    PlayedAttack(
        "idle connections",
        "anyone",
        (*HONEST, None),
        disturbance=IdleStrangers,
        attackers=_NOBODY,
    ),
    PlayedAttack(
        "oracle", "an RPC node", (*HONEST, None), disturbance=LyingNode, attackers=_NOBODY
    ),
)


def attacks_called(names: Sequence[str] | None, kind: str) -> list[PlayedAttack]:
    """Return the attacks with these names, or all, as they are played on a kind of audits."""
    known = {each.name: each.on(kind) for each in ATTACKS}
    for name in names or ():
        if name not in known:
            raise ValueError(f"unknown attack {name!r}. Known attacks: {', '.join(known)}.")
    return [known[name] for name in names or known]


def attack_named(name: str) -> PlayedAttack | None:
    """Return the attack with this name, in which hyphens may stand for spaces."""
    found = (each for each in ATTACKS if name in (each.name, each.name.replace(" ", "-")))
    return next(found, None)
