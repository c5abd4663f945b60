"""Delivery, roll and beacon: who is in a round, and who is audited."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain, combinations
from typing import Final

from model_choices import Choose, changed
from model_world import Bundle, Rules, State, charge, content, fail, message, penalise, step

from opfl_chain.protocol.echo import readable
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.roll import Listed

CLEAN: Final = 2
"""The place of a client's clean bundle: what is wrong with it comes first, and so counts first."""
_OLD: Final = 1


def deliver(state: State, choose: Choose, rules: Rules) -> State:
    """Clients deliver: honest ones to all, rogues what they like to whom they like."""
    held: list[set[Bundle]] = [set() for _ in state.seats]
    for client in state.honest:
        bundles = [Bundle(client, CLEAN)]
        if choose(f"old bundle of {client} is sent again", (False, True)):
            bundles.append(Bundle(client, _OLD, stale=True))
        for seat in state.honest_seats:
            held[seat].update(each for each in bundles if _taken(each, rules))
    for client in state.rogues:
        if client in state.left:
            continue
        first = choose(f"bundle of {client}", _bundles(client))
        for seat in state.honest_seats:
            options = ((), (first,), (Bundle(client, CLEAN),), (first, Bundle(client, CLEAN)))
            sent = choose(f"{client} delivers to seat {seat}", options)
            held[seat].update(each for each in sent if _taken(each, rules))
    return changed(state, held=tuple(map(frozenset, held)))


def _bundles(client: ClientIndex) -> list[Bundle]:
    spoilt = chain.from_iterable(combinations(range(3), count) for count in range(4))
    return [
        *(Bundle(client, _OLD, each) for each in spoilt),
        Bundle(client, _OLD, high_s=True),
        Bundle(client, _OLD, stale=True),
        Bundle(client, _OLD, (0, 1, 2), copied=True),
    ]


def _taken(bundle: Bundle, rules: Rules) -> bool:
    """Return whether a member takes a bundle in."""
    return not (
        (bundle.high_s and rules.canonical)
        or (bundle.stale and rules.bound)
        or (bundle.copied and rules.knowledge)
    )


@cache
def _encoded(bundles: frozenset[Bundle], is_reversed: bool) -> bytes:
    order = sorted(bundles, reverse=is_reversed)
    return Listed({each.client: each.content for each in reversed(order)}).encode()


@cache
def _read(values: tuple[tuple[int, bytes | None], ...], most: int) -> tuple[Listed, ...]:
    found = readable(dict(values), lambda _, body: Listed.decode(body, most))
    return tuple(found.values())


@cache
def lists_of(clients: tuple[ClientIndex, ...], bundles: frozenset[Bundle]) -> list[bytes]:
    """All lists that the byzantine member can make of signed bundles."""
    lists: list[dict[ClientIndex, bytes]] = [{}]
    for client in clients:
        of_client = sorted({each.content for each in bundles if each.client == client})
        lists = [
            {**each, **({client: named} if named else {})}
            for each in lists
            for named in (None, *of_client)
        ]
    return [Listed(each).encode() for each in lists]


def agreed_list(
    state: State,
    choose: Choose,
    rules: Rules,
    label: str,
    held: Sequence[frozenset[Bundle]],
    signed: set[Bundle],
    clients: Sequence[ClientIndex],
) -> tuple[State, dict[ClientIndex, bytes]]:
    """Have members list bundles; return those that count."""
    last = None if rules.smallest_counts else state.honest_seats[-1]  # which came first to it
    own = {seat: _encoded(held[seat], seat == last) for seat in state.honest_seats}
    options = lists_of(tuple(clients), frozenset(signed))
    state, values, _ = step(state, choose, rules, label, own, options, state.attempt == 0)
    named = rules.candidates(_read(tuple(values.items()), len(state.clients)))
    for client in clients:
        sent = {frozenset(b for b in held[s] if b.client == client) for s in state.honest_seats}
        if len(sent) == 1 and any(sent) and client not in named:
            state = fail(state, "FEW what a client sent to all honest members does not count")
    return state, named


def name_candidates(state: State, choose: Choose, rules: Rules) -> State:
    """Members list what they have."""
    known = set(chain.from_iterable(state.held))
    # The byzantine member has what it was sent alone; a bundle that members refuse is no use to it.
    known |= {Bundle(client, CLEAN) for client in state.clients if client not in state.left}
    clients = [client for client in state.clients if client not in state.left]
    state, named = agreed_list(state, choose, rules, "list", state.held, known, clients)
    bundles = {each.content: each for each in known}
    found = tuple(sorted(bundles[each] for each in named.values()))
    here = {each for seat in state.honest_seats for each in state.held[seat]}
    if rules.roll_by_members and not set(found) <= here:
        state = fail(state, "HOLD an honest member lacks what is on the roll")
    return changed(state, named=found, held=())


def make_roll(state: State, choose: Choose, rules: Rules) -> State:
    """Members complain of candidates that do not open, and sign the roll."""
    named = {each.client: each.content for each in state.named}
    own = {
        seat: message(tuple(each for each in state.named if seat in each.spoilt))
        for seat in state.honest_seats
    }
    options = [message(()), *(message((each,)) for each in state.named), message(state.named)]
    state, values, _ = step(state, choose, rules, "complaints", own, options)
    standing: set[Bundle] = set()
    for seat, body in values.items():
        filed = content(body) if body is not None and body != b"another" else ()
        standing |= {each for each in filed if seat in each.spoilt or not rules.complaint_proof}
        if any(each.copied and seat != state.rogue_seat for each in filed):
            state = fail(state, "G4 a complaint opens another client's envelope")
    left = rules.exclude(named, [(each.client, each.content) for each in standing])
    if rules.complaint_costs:
        for each in sorted(standing):
            state = charge(state, each.client, rules.complaint_costs)
    roll = tuple(each for each in state.named if left.get(each.client) == each.content)
    if not rules.roll_by_members:
        roll = choose("the server's roll", (roll, roll[1:], state.named))
    for each in roll:
        if any(seat in each.spoilt for seat in state.honest_seats):
            state = fail(state, "HOLD an honest member lacks words of what is on the roll")
    if not set(state.honest) <= {each.client for each in roll}:
        state = fail(state, "FEW an honest client that delivered is not on the roll")
    return changed(state, roll=tuple(changed(each, spoilt=()) for each in roll), named=())


def draw(state: State, choose: Choose, rules: Rules) -> State:
    """The beacon draws who is audited; without it everybody on the roll is."""
    on_roll = [each.client for each in state.roll]
    audited = on_roll
    withheld = state.rogue_seat is not None and choose("beacon is withheld", (False, True))
    if withheld and state.byzantine is not None:
        fined = penalise(state, state.byzantine, "withheld")
        state = fined if rules.penalties else changed(state, faulty=True)
    if not withheld:
        audited = [client for client in on_roll if choose(f"{client} is audited", (False, True))]
    outside = {each.client for each in state.roll if each.stale}
    outside |= {
        client
        for client in state.rogues
        if client in audited and choose(f"{client} is outside", (True, False))
    }
    return changed(state, audited=frozenset(audited), outside=frozenset(outside & set(audited)))
