"""The world of the model: who takes part, what a state is, the rules, and how members are heard.

`Rules` holds the pure functions of `opfl_chain.protocol` that daemons call, and switches for rules
that stand in daemons and contracts. Every one of them can be taken away.

What is abstracted, in this one place:

- Signatures cannot be forged, hashes do not collide, envelopes open for their holders alone. A
  `Bundle` is a name with the defects that a client can give it, and its content hash is that name.
- Words are real `Answer`s, small ones: they accept if their last words add up to zero. A component
  of a sum is the hash of the clients that were added up.
- Messages whose wire format costs time are looked up by a name. Formats have tests of their own.
- Time is the order of phases. Messages between honest parties arrive within a step; those of
  the byzantine member arrive at whom it likes, at once or after the echo, in a bound step also so
  late that the other one has echoed.
- An honest member may be away once in a round, from the exchange of a hearing or from the sum.
  Beside a byzantine one this may delay things, no more. What its absence costs it is not here.
- A meeting inside MPC gives the right results to all honest members, to one of them, or to none:
  members that tamper with words inside it are excluded by the assumption of these kinds of audits.
  It is held once before anyone is charged; how members share anew what they hold is not here.
- Nature draws who is audited and who is outside, in all ways. So whatever an adversary decides
  afterwards may depend on it, and what it decides before cannot: that is the order of phases.
- Not here: networks, gas, rewards, terms, and reorganisations but for a replayed bundle and a
  second verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from model_choices import Choose, changed

from opfl_chain.protocol import audit_exchange, echo, meeting, referee, roll, seats, sums
from opfl_chain.protocol.echo import Common, Echo, Signed
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.referee import MOST_COMPONENTS
from opfl_chain.protocol.verdict import Outcome

FULL: Final = 10
"""The penalty of a client."""
STAKE: Final = 2
COSTS: Final = {
    "silence": 1,
    "dissent": 1,
    "absence": 1,
    "withheld": 1,
    "falsehood": STAKE,
    "equivocation": STAKE,
}
"""Penalties of members: a part of the stake, or all of it. Their order is a matter of the terms."""
GRAVE: Final = frozenset(COSTS) - {"silence"}
"""Faults that cost the seat."""
PROVED: Final = "proved"
MEETING: Final = "meeting"
"""Audits inside MPC, of the kinds `plain` and `guided`."""


@dataclass(frozen=True, order=True)
class Bundle:
    """A contribution or an answer of a client."""

    client: ClientIndex
    place: int
    """Its place among the client's bundles in the order of content hashes."""
    spoilt: tuple[int, ...] = ()
    """The seats for which its envelopes do not open to their leaf hashes."""
    high_s: bool = False
    stale: bool = False
    """Made for another opening, and so for another model."""
    copied: bool = False
    """Sealed with another client's ephemeral key."""

    @property
    def content(self) -> bytes:
        """Stands for the content hash."""
        return bytes([self.place, self.client]).ljust(32, b"\1")


@dataclass(frozen=True)
class State:
    """Knowledge after a phase. Honest members agree on all of it, or the search has ended."""

    kind: str
    byzantine: int | None
    """Number of the byzantine member on the roster."""
    honest: tuple[ClientIndex, ...]
    rogues: tuple[ClientIndex, ...]
    seats: tuple[int, ...] = (0, 1, 2)
    bench: tuple[int, ...] = (3,)
    paid: tuple[tuple[str, int], ...] = ()
    at_fault: frozenset[int] = frozenset()
    """Members that paid for a grave fault."""
    left: frozenset[ClientIndex] = frozenset()
    """Clients that were charged: they contribute no more."""
    failed: bool = False
    """A meeting among the present seats has failed though nobody was away."""
    failures: int = 0
    """Meetings that the byzantine member has made fail so, in the whole job."""
    crashes: int = 0
    """Meetings in which an honest machine may still fail."""
    crashed: int = 0
    """Meetings in which one did."""
    history: tuple[seats.PastChange, ...] = ()
    """Changes of seats."""
    broken: tuple[str, ...] = ()

    # of the round
    before: int = 0
    """Wei that the byzantine member had paid before the round."""
    faulty: bool = False
    """The byzantine member did something in this round that has a price."""
    held: tuple[frozenset[Bundle], ...] = ()
    """The contributions that each seat has."""
    named: tuple[Bundle, ...] = ()
    """The candidates."""
    roll: tuple[Bundle, ...] = ()
    audited: frozenset[ClientIndex] = frozenset()
    outside: frozenset[ClientIndex] = frozenset()
    attempt: int = 0
    """The hearing: 0 is that before the verdict."""
    away: frozenset[ClientIndex] = frozenset()
    """Honest clients that were away when they had to answer, and come back within the window."""
    may_miss: bool = True
    """True if an honest member may be away: that multiplies all ways of a round."""
    missing: int | None = None
    """The seat of an honest member that is away in this hearing, or from the sum."""
    missed: bool = False
    """An honest member was away in this round."""
    heard: tuple[frozenset[Bundle], ...] = ()
    """The answers that each seat has."""
    answers: tuple[Bundle, ...] = ()
    """The answers that count."""
    invalid: frozenset[Bundle] = frozenset()
    """Answers that were found not to open."""
    plan: Any = None
    """The report of the byzantine member, if it counts."""
    complained: frozenset[Bundle] = frozenset()
    absent: bool = False
    """The byzantine member said nothing that counts in a step of the audit."""
    ends: tuple[tuple[ClientIndex, Outcome], ...] = ()
    """Ends of audits, for honest members to sign."""
    passed: frozenset[ClientIndex] | None = None
    """The verdict."""
    seen: frozenset[int] = frozenset()
    """The components that honest seats have shown a referee, of whatever contribution."""
    final: bool = False
    again: frozenset[ClientIndex] = frozenset()
    """Rogues on the next roll, and outside, while their audit of this round is undecided."""

    @property
    def clients(self) -> tuple[ClientIndex, ...]:
        return tuple(sorted((*self.honest, *self.rogues)))

    @property
    def rogue_seat(self) -> int | None:
        """The seat of the byzantine member, if it has one."""
        return self.seats.index(self.byzantine) if self.byzantine in self.seats else None

    @property
    def honest_seats(self) -> list[int]:
        return [seat for seat in range(3) if seat != self.rogue_seat]

    @property
    def present_seats(self) -> list[int]:
        """The seats of honest members that are not away."""
        return [seat for seat in self.honest_seats if seat != self.missing]

    @property
    def is_attended(self) -> bool:
        """At most one member is byzantine or away in this round: then nothing is held up."""
        return self.byzantine is None or not (self.missed or self.missing is not None)

    @property
    def on_roll(self) -> dict[ClientIndex, Bundle]:
        return {each.client: each for each in self.roll}

    @property
    def subjects(self) -> tuple[ClientIndex, ...]:
        """Audited clients that did not pass, and whose audits have not ended."""
        ended = dict(self.ends)
        return tuple(
            sorted(
                client
                for client in self.audited
                if client not in (self.passed or ()) and client not in ended
            )
        )


Said = Sequence[int]
"""Addresses are numbers of the roster here."""


def components_for_referee(conclusion: audit_exchange.Conclusion) -> Iterable[int]:
    """The components of an audit that seats want a referee to recompute."""
    return conclusion.for_referee


def words_fit(body: bytes, committed: bytes | None) -> bool:
    """Return whether words are those that a report commits to; bodies stand for both."""
    return body == committed


@dataclass(frozen=True)
class Rules:
    """The rules. As it stands those that are built."""

    # The functions that daemons call.
    common: Callable[..., Common] = echo.common
    candidates: Callable[[Iterable[roll.Listed]], dict[ClientIndex, bytes]] = roll.candidates
    exclude: Callable[..., dict[ClientIndex, bytes]] = roll.exclude
    conclude: Callable[..., audit_exchange.Conclusion] = audit_exchange.conclude
    agree: Callable[..., sums.AgreedSum] = sums.agree
    wanted: Callable[[Iterable[referee.HandOver]], list[referee.Wanted]] = referee.agreed_wanted
    results: Callable[..., frozenset[ClientIndex] | None] = meeting.agreed_results
    due_change: Callable[..., seats.DueChange | None] = seats.due_change
    asks: Callable[[audit_exchange.Conclusion], Iterable[int]] = components_for_referee

    # Rules of intake, daemons and contracts.
    canonical: bool = True
    """A signature with a high s counts nowhere; off: members take it and the contract does not."""
    bound: bool = True
    """A bundle names the opening."""
    knowledge: bool = True
    """A bundle proves that its client knows the secret of its ephemeral key."""
    late_counts: bool = False
    """A message that comes after the echo counts."""
    fits: Callable[[bytes, bytes | None], bool] = words_fit
    serves_echo: bool = True
    """A member that ended a bound step without sending its echo serves it."""
    complaint_proof: bool = True
    complaint_costs: int = 0
    roll_by_members: bool = True
    """Off: by the server."""
    referee: bool = True
    most_shown: int = MOST_COMPONENTS
    """Components of a contribution that a referee is shown."""
    waits: bool = True
    """Undecided audits are heard again; off: the verdict settles it."""
    heard_once: bool = True
    """A hearing that has ended is not taken up again for the clients that it left undecided."""
    signatures: int = 2
    unanswered_costs: int = FULL
    response_window: bool = True
    suspects: bool = True
    """After a meeting that failed though nobody was away a suspect leaves its seat."""
    one_sum: bool = True
    """A member reveals the sum of one verdict of a round."""
    penalties: bool = True
    """Off: a withheld beacon is free."""
    suspends: bool = True
    """A client with an undecided audit is on no roll."""
    smallest_counts: bool = True
    """A member lists the smallest content hash of a client; off: that of what came first."""


def amount_paid(state: State, who: str) -> int:
    return dict(state.paid).get(who, 0)


def fail(state: State, what: str) -> State:
    return changed(state, broken=tuple(sorted({*state.broken, what})))


def miss(state: State, choose: Choose, label: str) -> State:
    """Have an honest member be away, once in a round."""
    if state.kind != PROVED or state.missed or not state.may_miss:
        return state
    missing = choose(f"away from the {label}", (None, *state.honest_seats))
    return changed(state, missing=missing, missed=missing is not None)


def pay(state: State, who: str, amount: int, most: int) -> State:
    """Take money of somebody, as much as is left."""
    paid = dict(state.paid)
    paid[who] = min(most, paid.get(who, 0) + amount)
    return changed(state, paid=tuple(sorted(paid.items())))


def penalise(state: State, member: int, fault: str) -> State:
    """Have a member pay for a fault."""
    after = pay(state, f"member {member}", COSTS[fault], STAKE)
    if member != state.byzantine:
        return fail(after, "G3 an honest member pays")
    at_fault = after.at_fault | ({member} if fault in GRAVE else set())
    return changed(after, at_fault=at_fault, faulty=True)


def certify(
    state: State, member: int, fault: str, noted_by: Collection[int], rules: Rules
) -> State:
    """Have a member pay for a fault that others saw; the byzantine member signs whatever it may."""
    signers = set(noted_by) | ({state.byzantine} if state.byzantine is not None else set())
    signers -= {member}
    return penalise(state, member, fault) if len(signers) >= rules.signatures else state


def charge(state: State, client: ClientIndex, amount: int) -> State:
    after = pay(state, f"client {client}", amount, FULL)
    if client in state.honest:
        return fail(after, "G1 an honest client pays")
    return changed(after, left=state.left | {client})


# --- messages

_MESSAGES: dict[bytes, Any] = {}


def message(content: Any) -> bytes:
    """Stands for the wire format of what a member says."""
    body = repr(content).encode()
    _MESSAGES[body] = content
    return body


def content(body: bytes) -> Any:
    return _MESSAGES[body]


_PATTERNS: Final = ("both", "two", "first", "second", "and late", "late to first", "late to second")
"""To whom a message goes: to both honest seats; another one to the second; to one of them alone; to
both and another one to the first after the echo; only after the echo."""

Values = Mapping[int, bytes | None]


def step(
    state: State,
    choose: Choose,
    rules: Rules,
    label: str,
    own: Mapping[int, bytes],
    options: Sequence[bytes],
    is_varied: bool = True,
) -> tuple[State, Values, bool]:
    """Have all members say something; return what counts, and if the byzantine one said two things.

    ``own`` are the messages of honest seats that are there, ``options`` what the byzantine one may
    say. Who hears them, and when, is varied for two of them in some steps: the rule of all steps is
    the same.
    """
    rogue, said, pattern, other = state.rogue_seat, None, "nobody", b""
    if rogue is not None:
        said = choose(label, (None, *options))
        if said is not None:
            is_varied = is_varied and said in (options[0], options[-1])
            patterns = _PATTERNS if is_varied else _PATTERNS[:2]
            pattern = choose(f"{label}, to", patterns if len(own) > 1 else _PATTERNS[:1])
            other = next((each for each in options if each != said), b"another")
    told = tuple(sorted(own.items()))
    same, values, doubles = _heard(
        rules.common, rules.late_counts, rogue, told, said, other, pattern
    )
    if not same:
        state = fail(state, "AGREE honest members hear different things")
    if doubles and rogue is not None:
        state = penalise(state, state.seats[rogue], "equivocation")
    return state, values, doubles


@cache
def _heard(
    common: Callable[..., Common],
    late_counts: bool,
    rogue: int | None,
    own: tuple[tuple[int, bytes], ...],
    said: bytes | None,
    other: bytes,
    pattern: str,
) -> tuple[bool, Values, bool]:
    """The common view of honest members; whether it is the same, and if somebody doubled."""
    honest = [seat for seat, _ in own]
    direct = {seat: dict(own) for seat in honest}
    late: dict[int, bytes] = {}
    if rogue is not None and said is not None:
        first, second = honest[0], honest[-1]
        if pattern in ("both", "first", "two", "and late"):
            direct[first][rogue] = said
        if pattern in ("both", "second", "and late"):
            direct[second][rogue] = said
        if pattern == "two":
            direct[second][rogue] = other
        if pattern == "and late":
            late[first] = other
        if pattern == "late to first":
            late[first] = said
        if pattern == "late to second":
            late[second] = said
    found = []
    for seat, body in own:
        heard = {each: dict(bodies) for each, bodies in direct.items()}
        if rogue is not None and seat in late and late_counts:
            heard[seat].setdefault(rogue, late[seat])
        echoes = {each: Echo.of(bodies) for each, bodies in heard.items()}
        bodies = {
            (author, keccak256(each)): Signed(each, b"")
            for bodies in heard.values()
            for author, each in bodies.items()
        }
        if rogue is not None:
            # It echoes what it likes, also a late message of its own, which it shows.
            shown = {rogue: late[seat]} if seat in late else {}
            echoes[rogue] = Echo.of(shown)
            bodies.update({(a, keccak256(each)): Signed(each, b"") for a, each in shown.items()})
        found.append(common(seat, body, echoes, bodies))
    same = all(each == found[0] for each in found)
    return same, found[0].values, bool(found[0].equivocators)
