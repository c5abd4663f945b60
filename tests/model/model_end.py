"""The end of a round: attestations, the sum, charges and seats; and what must then hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from model_audit import agree_answers, answer, hear, referee_words, report
from model_choices import Choose, changed
from model_roll import deliver, draw, make_roll, name_candidates
from model_world import (
    FULL,
    Rules,
    State,
    amount_paid,
    certify,
    charge,
    fail,
    miss,
    penalise,
    step,
)

from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.echo import readable
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.referee import Wanted
from opfl_chain.protocol.seats import PastChange
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.sums import decode_parts, encode_parts
from opfl_chain.protocol.verdict import Outcome

MOST_FAILURES: Final = 3
"""Meetings that one member can make fail, and as many more for every honest machine that does."""
_NOBODY: Final = ClientIndex(99)

Phase = Callable[[State, Choose], State]


def attest(state: State, choose: Choose, rules: Rules) -> State:
    """Members attest; honest ones the same, so that it is decided."""
    del rules
    if state.byzantine is None or state.rogue_seat is None:
        return state
    act = choose("attests", ("copy", "other", "nothing"))
    if act == "copy":
        return state
    return penalise(state, state.byzantine, "dissent" if act == "other" else "silence")


def add_up(state: State, choose: Choose, rules: Rules) -> State:
    """Members state their parts of the sum; where they differ the standby adds up."""
    passed = sorted(state.passed or ())
    if not passed:
        return changed(state, final=True)
    rogue, state = state.rogue_seat, miss(state, choose, "sum")
    own = {seat: encode_parts(_parts(seat, passed)) for seat in state.present_seats}
    options: list[bytes] = []
    if rogue is not None:
        right, wrong = _parts(rogue, passed), _parts(rogue, [*passed, _NOBODY])
        part = _parts(rogue, passed[:-1])
        options = [
            encode_parts(each)
            for each in (right, (wrong[0], right[1]), (right[0], wrong[1]), wrong, part)
        ]
    state, values, doubles = step(state, choose, rules, "sum", own, options)
    parts = readable(values, lambda _, body: decode_parts(body))
    agreed = rules.agree(parts)
    if agreed.for_referee:
        contents = {each.client: each.content for each in state.roll}
        wanted = [
            Wanted(client, component, contents[client])
            for client in passed
            for component in agreed.for_referee
        ]
        state, judged, lies = referee_words(state, choose, rules, wanted)
        added = {
            component: _part(
                component,
                [_NOBODY] * lies + [each.client for each in judged if each.component == component],
            )
            for component in {each.component for each in judged}
        }
        agreed = rules.agree(parts, added)
    for seat in agreed.liars:
        others = [state.seats[each] for each in state.present_seats if each != seat]
        state = certify(state, state.seats[seat], "falsehood", others, rules)
    if rogue is not None and rogue not in parts and not doubles:
        others = [state.seats[each] for each in state.present_seats]
        state = certify(state, state.seats[rogue], "absence", others, rules)
    if any(digest != _part(index, passed) for index, digest in agreed.hashes.items()):
        state = fail(state, "SUM another sum than that of the verdict is agreed")
    if (
        len(passed) > 1
        and not rules.one_sum
        and choose("a fork shows another verdict", (False, True))
    ):
        state = fail(state, "G4 two sums of a round are revealed")
    return changed(state, final=len(agreed.hashes) == COMPONENTS, missing=None)


def _part(component: int, clients: Sequence[ClientIndex]) -> bytes:
    """Stands for the hash of one component of a sum."""
    return keccak256(bytes([component, *sorted(clients)]))


def _parts(seat: int, clients: Sequence[ClientIndex]) -> tuple[bytes, bytes]:
    own, following = held_indices(seat)
    return _part(own, clients), _part(following, clients)


def open_next(state: State, choose: Choose, rules: Rules) -> State:
    """The next round opens while the audits that this one left open are not decided."""
    if rules.suspends:
        return state
    held = state.audited - (state.passed or frozenset())
    again = [
        client
        for client in sorted(held & set(state.rogues))
        if choose(f"{client} cheats in the next round", (False, True))
    ]
    return changed(state, again=frozenset(again))


def next_hearing(state: State, choose: Choose, rules: Rules) -> State:
    """Undecided audits are heard again when the response window is over."""
    del choose
    if not rules.waits:
        return state
    present = _change_seats(state, rules)  # held by those who have the seats when it begins
    return changed(present, attempt=state.attempt + 1)


def settle(state: State, choose: Choose, rules: Rules) -> State:
    """Charge or acquit, change seats, and check what must hold at the end of a round."""
    held = {client for client in state.audited if client not in (state.passed or ())}
    for client, outcome in state.ends:
        if state.on_roll[client].high_s or outcome is Outcome.PASSED or client not in held:
            continue  # the contract takes no evidence with a high s
        unanswered = outcome is Outcome.UNANSWERED
        state = charge(state, client, rules.unanswered_costs if unanswered else FULL)
    for client in state.again:
        state = charge(state, client, FULL)
    state = _accuse(state, choose, rules)
    return _change_seats(_check(state, held), rules)


def _accuse(state: State, choose: Choose, rules: Rules) -> State:
    """Have the byzantine member sign, alone, that somebody honest is to pay."""
    if state.byzantine is None:
        return state
    accused = choose("accuses", (None, "client", "member"))
    if accused == "client" and rules.signatures < 2:
        state = charge(state, state.honest[0], FULL)
    if accused == "member":
        member = next(each for each in state.seats if each != state.byzantine)
        state = certify(state, member, "falsehood", (), rules)
    return state


def _check(state: State, held: set[ClientIndex]) -> State:
    undecided = held - set(dict(state.ends))
    claimed = bool(state.bench) and state.is_attended
    if claimed and undecided & set(state.honest):
        state = fail(state, "G1 the deposit of an honest client stays locked")
    for client in sorted(held & set(state.rogues)):
        answered = dict(state.ends).get(client) is not Outcome.UNANSWERED
        guilty = client in state.outside or not answered
        owed = amount_paid(state, f"client {client}") < FULL * (1 + (client in state.again))
        if claimed and guilty and owed and client in undecided | set(dict(state.ends)):
            state = fail(state, "G2 an audited contribution outside is not charged in full")
    passed_outside = state.outside & (state.passed or frozenset())
    acquitted = {client for client, end in state.ends if end is Outcome.PASSED} & state.outside
    if passed_outside or acquitted:
        state = fail(state, "G2 an audited contribution outside passes")
    paid_now = amount_paid(state, f"member {state.byzantine}") - state.before
    if not state.final and claimed and not paid_now:
        state = fail(state, "G5 a round fails for free")
    if state.faulty and not paid_now and claimed:
        state = fail(state, "G5 a fault is free")
    if state.bench and state.failures > MOST_FAILURES * (1 + state.crashed):
        state = fail(state, "G5 a member makes more than three meetings fail")
    return state


def _change_seats(state: State, rules: Rules) -> State:
    due = rules.due_change(
        state.seats, state.bench, state.at_fault, state.history, state.failed and rules.suspects
    )
    if due is None:
        return state
    standby: int = due.standby  # type: ignore[assignment]
    seats = list(state.seats)
    out, seats[due.seat] = seats[due.seat], standby
    bench = sorted({*state.bench, out} - {standby})
    history = (*state.history, PastChange(state.seats, due.seat))
    return changed(state, seats=tuple(seats), bench=tuple(bench), history=history, failed=False)


def reopen(state: State, choose: Choose) -> State:
    """Begin the next round with what is carried on: money, seats, and meetings that failed."""
    del choose
    return State(
        state.kind,
        state.byzantine,
        state.honest,
        state.rogues,
        state.seats,
        state.bench,
        state.paid,
        state.at_fault,
        state.left,
        state.failed,
        state.failures,
        state.crashes,
        state.crashed,
        state.history,
        state.broken,
        before=amount_paid(state, f"member {state.byzantine}"),
    )


def phases_of_round(rules: Rules, late_hearings: int) -> list[Phase]:
    """Return the phases of one round."""
    audit = (answer, agree_answers, report, hear)
    later = (next_hearing, *audit) * (late_hearings if rules.waits else 0)
    ending = (attest, add_up, open_next, *later, settle)
    order = (deliver, name_candidates, make_roll, draw, *audit, *ending)
    return [partial(each, rules=rules) for each in order]


def broken(state: State) -> Sequence[str]:
    return state.broken


def starts(
    kind: str,
    honest: int = 1,
    rogues: int = 1,
    bench: tuple[int, ...] = (3,),
) -> list[State]:
    """Return the worlds with a byzantine member in every place, and without one."""
    clients = [ClientIndex(each) for each in range(honest + rogues)]
    return [
        State(kind, byzantine, tuple(clients[:honest]), tuple(clients[honest:]), bench=bench)
        for byzantine in (None, 0, 1, 2, *bench)
    ]
