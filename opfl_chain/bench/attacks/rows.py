"""Plays an attack in a whole job, and says what it cost whom."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from opfl_chain.adversaries.clients import DELIVERIES
from opfl_chain.bench.attacks.catalogue import PlayedAttack
from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.jobs.localnet.daemon import LocalnetError
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.jobs.localnet.outcome import ACQUITTED, PASSED, JobOutcome
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.protocol.audit_exchange import Reveal
from opfl_chain.protocol.echo import SLOTS_PER_ATTEMPT, Slot
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.published_answers import decode_rounds
from opfl_chain.roles.member.proved_audits import ANSWERS_FILE

FAILS: Final = "fails"
WORKS: Final = "works, as SECURITY.md says"
_WORD_BITS: Final = 64
Tell = Callable[[str], None]
Openings = Mapping[tuple[int, int, ClientIndex], int]
"""Numbers of different words that an honest member revealed, by round, member and client."""
ToldBits = Set[tuple[int, int]]
"""The rounds and clients of which a replay inside MPC told a member a bit that it had chosen."""


@dataclass(frozen=True)
class AttackRow:
    """The result of an attack. Amounts are parts of deposits and stakes that were lost."""

    attack: str
    kind: str
    actors: str
    honest_clients_lost_wei: int
    honest_members_lost_wei: int
    attacker_lost_wei: int
    cheat_charged: bool | None
    """Every audited training cheat was charged its whole deposit; null if none was audited."""
    secret_bits_leaked: int
    rounds_final: int
    rounds: int
    spoils: int
    """Rounds that the attack can void by its nature."""
    unpunished: tuple[str, ...]
    """Attackers that can be named, and lost nothing."""
    took_place: bool
    works: bool
    """The attack is known to work on this kind of audits."""
    outcome: str

    @property
    def failures(self) -> list[str]:
        """Events that should not have happened, in words."""
        if not self.took_place:
            return ["the attack did not take place"]
        if self.works:
            return [] if self.harm else ["the attack works no more, against SECURITY.md"]
        return self.harm

    @property
    def harm(self) -> list[str]:
        """Return the achievements of the attack, in words."""
        found = []
        if self.honest_clients_lost_wei or self.honest_members_lost_wei:
            found.append("honest participants lost money")
        if self.cheat_charged is False:
            found.append("an audited cheat was not charged in full")
        if self.secret_bits_leaked:
            found.append("secrets leaked")
        found += [f"{name} lost nothing" for name in self.unpunished]
        if self.rounds_final + self.spoils < self.rounds:
            found.append("rounds have no result")
        return found

    @property
    def report(self) -> dict[str, Any]:
        expected = WORKS if self.works else FAILS
        return {**asdict(self), "expected": expected, "harm": self.harm, "failures": self.failures}


def play_attack(attack: PlayedAttack, kind: str, tell: Tell = lambda text: None) -> AttackRow:
    """Play a job with an attack, on daemons and a chain of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="opfl-attack-") as folder,
        Localnet(attack.plan(kind), Path(folder), tell) as net,
        attack.disturbance(net) as meanwhile,
    ):
        try:
            net.start(meanwhile)
            net.run(meanwhile)
        except LocalnetError as error:
            return _stuck(attack, kind, str(error))
        return row_of(
            attack,
            kind,
            JobOutcome.of(net),
            revealed(net.folder, attack),
            told_bits(net.folder, attack),
            meanwhile.told,
            meanwhile.took_place,
        )


def row_of(
    attack: PlayedAttack,
    kind: str,
    outcome: JobOutcome,
    openings: Openings,
    bits: ToldBits = frozenset(),
    told: str = "",
    took_place: bool = True,
) -> AttackRow:
    """Read a row off the end of a job."""
    lost = {name: outcome.lost_wei(name) for name in (*attack.honest, *attack.attackers)}
    of_clients, of_members = (
        sum(lost[name] for name in attack.honest if name.startswith("client") is is_client)
        for is_client in (True, False)
    )
    named = (name for name in attack.attackers if name not in attack.unnamed)
    return AttackRow(
        attack=attack.name,
        kind=kind,
        actors=attack.actors,
        honest_clients_lost_wei=of_clients,
        honest_members_lost_wei=of_members,
        attacker_lost_wei=sum(lost[name] for name in attack.attackers),
        cheat_charged=_cheat_charged(attack, outcome),
        secret_bits_leaked=_leaked_bits(
            attack, outcome, openings, bits, attack.plan(kind).boundary.coordinates
        ),
        rounds_final=sum(outcome.is_final(number) for number in range(outcome.rounds)),
        rounds=attack.rounds,
        spoils=attack.spoils,
        unpunished=tuple(name for name in named if not lost[name]),
        took_place=took_place,
        works=attack.works,
        outcome="; ".join(filter(None, (attack.remark, told, *_events(attack, outcome)))),
    )


def revealed(folder: Path, attack: PlayedAttack) -> Openings:
    """Count the different words that honest members revealed on one contribution.

    Words on the same contribution are masked once: a second
    opening that differs from the first would tell something.
    """
    found: dict[tuple[int, int, ClientIndex], set[bytes]] = {}
    for number in range(MEMBERS):
        name = f"member-{number}"
        path = folder / "state" / name / ANSWERS_FILE
        if name not in attack.honest or not path.exists():
            continue
        for t, published in decode_rounds(path.read_text()).items():
            for (author, slot), message in published.messages.items():
                if author != number or slot % SLOTS_PER_ATTEMPT != Slot.REVEAL:
                    continue
                for client, words in Reveal.decode(message.body, author).answers.items():
                    found.setdefault((t, number, client), set()).add(words.encode())
    return {place: len(words) for place, words in found.items()}


def told_bits(folder: Path, attack: PlayedAttack) -> ToldBits:
    """Read off the log of a member of which contributions it was told a secret bit."""
    logs = sorted(folder.glob("member-0-*.log")) if attack.member is not None else []
    lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return {
        (event["round"], int(client))
        for event in events
        if event["event"] == "leak" and "bits" in event
        for client in event["bits"]
    }


def _clients(attack: PlayedAttack) -> list[str]:
    return [f"client-{i}" for i in range(len(attack.clients))]


def _cheat_charged(attack: PlayedAttack, outcome: JobOutcome) -> bool | None:
    """Return whether every client with a false gradient that was audited lost its deposit."""
    audited = [
        (number, name)
        for name, cheat in zip(_clients(attack), attack.clients, strict=True)
        if cheat is not None and cheat not in DELIVERIES
        for number in range(outcome.rounds)
        if outcome.is_audited(number, name)
    ]
    if not audited:
        return None
    charged = outcome.charged()
    return all(
        (number, name) in charged and outcome.lost_wei(name) == outcome.locked_wei(name)
        for number, name in audited
    )


def _leaked_bits(
    attack: PlayedAttack,
    outcome: JobOutcome,
    openings: Openings,
    told: ToldBits,
    coordinates: int,
) -> int:
    """Count what is known of honest clients beyond one expected bit each, and sums of several.

    A verdict other than passed on an honest contribution tells what made it so; a second, different
    opening of a contribution takes its mask away; a sum with one honest client is its gradient.
    The log of a member that tampers with replays says what they told it.
    """
    honest = [name for name in attack.honest if name.startswith("client")]
    bits = sum(count - 1 for count in openings.values())
    indices = {outcome.client_index(name) for name in honest} if told else set()
    bits += sum(client in indices for _, client in told)
    for number in range(outcome.rounds):
        verdicts = {name: outcome.verdict(number, name) for name in honest}
        for name, verdict in verdicts.items():
            if outcome.is_audited(number, name) and verdict not in (PASSED, ACQUITTED, None):
                bits += 1
        if outcome.is_final(number) and list(verdicts.values()).count(PASSED) == 1:
            bits += _WORD_BITS * coordinates
    return bits


def _events(attack: PlayedAttack, outcome: JobOutcome) -> list[str]:
    """Say who was charged, who paid, who took a seat, and which rounds are void."""
    charged = [
        f"{name} charged in full in round {number} ({what.lower()})"
        for (number, name), what in sorted(outcome.charged().items())
    ]
    on_rolls = set().union(*(outcome.participants(t) for t in range(outcome.rounds)))
    kept_out = [
        f"{name} is on no roll"
        for name in attack.attackers
        if name.startswith("client") and name not in on_rolls
    ]
    faults: dict[tuple[str, str], list[int]] = {}
    for (number, name), found in sorted(outcome.penalties().items()):
        for fault in sorted(found, key=lambda each: MemberFault[each]):
            faults.setdefault((name, fault.lower()), []).append(number)
    paid = [
        f"{name} paid for {fault} in round {', '.join(map(str, rounds))}"
        for (name, fault), rounds in faults.items()
    ]
    seats = [f"{taker} took the seat of {loser}" for loser, taker in outcome.seat_changes()]
    void = [
        f"round {number} is void"
        for number in range(outcome.rounds)
        if not outcome.is_final(number)
    ]
    broken = outcome.report.first_failure
    trail = [f"the trail does not hold: {broken}"] if broken else []
    return charged + kept_out + paid + seats + void + trail


def _stuck(attack: PlayedAttack, kind: str, why: str) -> AttackRow:
    return AttackRow(
        attack=attack.name,
        kind=kind,
        actors=attack.actors,
        honest_clients_lost_wei=0,
        honest_members_lost_wei=0,
        attacker_lost_wei=0,
        cheat_charged=None,
        secret_bits_leaked=0,
        rounds_final=0,
        rounds=attack.rounds,
        spoils=attack.spoils,
        unpunished=(),
        took_place=True,
        works=False,
        outcome=f"stuck: {why}",
    )
