"""Audits: answers of clients, and the hearings in which members find out how audits end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, product
from typing import Final

from model_bound import bound_step
from model_choices import Choose, changed
from model_roll import agreed_list
from model_world import (
    MEETING,
    PROVED,
    Bundle,
    Rules,
    State,
    certify,
    content,
    fail,
    message,
    miss,
    step,
)

from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.audit_exchange import Answers, Conclusion, ReportRow, Row
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.meeting import Results
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.referee import HandedKeys, HandOver, Wanted
from opfl_chain.protocol.sealing import Complaint, SealingKey
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.verdict import Outcome, Verdict

_FIRST, _CLEAN = 1, 2
_NOBODY = "another"
LIES: Final = ("right", "own", "following", "both", "complaint", "no row")
"""Reports of the byzantine member on one answer: its words are right, or wrong in one or both
components; or that the answer does not open; or nothing."""
_WORDS: Final = ("right", "own", "following", "both")
_KEY: Final = b"\1" * 32
_FALSE_KEY: Final = b"\2" * 32


# --- answers of clients


def answer(state: State, choose: Choose, rules: Rules) -> State:
    """Clients answer: in time, later within the response window, or not at all."""
    del rules
    heard = [set(each) for each in state.heard] or [set() for _ in state.seats]
    away = set(state.away)
    due = state.audited if state.attempt == 0 else frozenset(state.subjects)
    for client in sorted(due & set(state.honest)):
        if state.attempt == 0 and choose(f"{client} is away", (False, True)):
            away.add(client)
            continue
        for seat in state.honest_seats:
            heard[seat].add(Bundle(client, _CLEAN))
    for client in sorted(due & set(state.rogues)):
        options = _ways_to_answer(client, tuple(state.honest_seats), state.attempt == 0)
        for seat, sent in zip(
            state.honest_seats, choose(f"{client} answers", options), strict=True
        ):
            heard[seat].update({sent} if sent is not None else ())
    return changed(state, heard=tuple(map(frozenset, heard)), away=frozenset(away))


@cache
def _ways_to_answer(
    client: ClientIndex, seats: tuple[int, ...], is_first: bool
) -> list[tuple[Bundle | None, ...]]:
    """Answers of a rogue to each honest seat. In the response window it does less, to save time."""
    clean = Bundle(client, _CLEAN)
    spoilt = [Bundle(client, _FIRST, (seat,)) for seat in range(3)]
    if is_first:
        return sorted(
            {each for first in spoilt for each in product((None, first, clean), repeat=len(seats))},
            key=repr,
        )
    nothing = (None,) * len(seats)
    return [nothing, *((each,) * len(seats) for each in (clean, *spoilt)), (clean, *nothing[1:])]


def agree_answers(state: State, choose: Choose, rules: Rules) -> State:
    """Members list the answers that they have; of several the one with the smallest hash counts."""
    clients = sorted(state.audited) if state.attempt == 0 else list(state.subjects)
    if not clients:
        return changed(state, answers=(), heard=())
    held = [
        frozenset(each for each in bundles if each.client in clients and each not in state.invalid)
        for bundles in state.heard
    ]
    known = set(chain.from_iterable(held)) | {
        Bundle(client, _CLEAN) for client in clients if client in state.rogues
    }
    state, named = agreed_list(state, choose, rules, "answers", held, known, clients)
    here = {each.content: each for each in chain.from_iterable(held)}
    if not set(named.values()) <= set(here):
        return fail(state, "HOLD an honest member lacks an answer that counts")
    answers = tuple(sorted(here[each] for each in named.values()))
    # Whatever a rogue sent it may send again, so that nothing is lost if it is forgotten here.
    return changed(state, answers=answers, heard=())


# --- reports and words


def report(state: State, choose: Choose, rules: Rules) -> State:
    """Members report on answers, with commitments to their words or with complaints."""
    if not state.answers:
        return state
    state = miss(state, choose, "hearing")
    own = {seat: message(("report", _plan(state, seat))) for seat in state.present_seats}
    lies = LIES if state.kind == PROVED else ("right", "complaint")
    plans = product(lies, repeat=len(state.answers))
    options = [message(("report", each)) for each in plans if _is_simple(each, state)]
    state, values, doubles = step(state, choose, rules, "report", own, options, False)
    plan = _said(values, state.rogue_seat)
    complained = {
        each
        for seat in range(3)
        for each, row in zip(state.answers, _said(values, seat) or (), strict=False)
        if row == "complaint" and seat in each.spoilt
    }
    state = changed(state, plan=plan, complained=frozenset(complained))
    if state.kind == PROVED and plan is None and state.rogue_seat is not None and not doubles:
        state = changed(state, absent=True)
    return state


def _is_simple(plan: Sequence[str], state: State) -> bool:
    """Return whether the byzantine member lies in one way, about one or all; later about all."""
    return len({*plan} - ({"right"} if state.attempt == 0 else set())) < 2


def _plan(state: State, seat: int) -> tuple[str, ...]:
    return tuple("complaint" if seat in each.spoilt else "right" for each in state.answers)


def _said(values: Mapping[int, bytes | None], seat: int | None) -> tuple[str, ...] | None:
    body = values.get(seat) if seat is not None else None
    return content(body)[1] if body not in (None, _NOBODY.encode()) else None


def hear(state: State, choose: Choose, rules: Rules) -> State:
    """Members say what they found, and conclude."""
    concluded = _proved if state.kind == PROVED else _met
    ends: dict[ClientIndex, Outcome | None] = {}
    if state.answers:
        state, ends = concluded(state, choose, rules)
    clients = state.audited if state.attempt == 0 else state.subjects
    found = {client: ends.get(client, Outcome.UNANSWERED) for client in clients}
    answered = {each.client for each in state.answers}
    invalid = state.invalid | {
        each for each in state.answers if found[each.client] is Outcome.UNANSWERED
    }
    keeps = set()
    if state.attempt > 0:
        keeps = {Outcome.PASSED, Outcome.OUTSIDE, Outcome.UNANSWERED}
    elif state.kind == PROVED:
        keeps = {Outcome.OUTSIDE}
    if not rules.response_window:
        keeps.add(Outcome.UNANSWERED)
    kept = {client: end for client, end in found.items() if end in keeps and end is not None}
    undecided = {client for client in answered if found[client] is None}
    if state.attempt and not rules.heard_once and undecided and answered - undecided:
        # Taken up again for fewer clients, all reports seem to be about something else.
        for seat in state.honest_seats:
            others = [state.seats[each] for each in state.honest_seats if each != seat]
            state = certify(state, state.seats[seat], "absence", others, rules)
    after = changed(
        state,
        ends=tuple(sorted({**dict(state.ends), **kept}.items())),
        invalid=invalid,
        answers=(),
        plan=None,
        complained=frozenset(),
        absent=False,
        missing=None,
    )
    return _verdict(after, found) if state.attempt == 0 else after


def _verdict(state: State, found: Mapping[ClientIndex, Outcome | None]) -> State:
    """Pass who is not audited, and who is if its audit has ended so."""
    on_roll = [each.client for each in state.roll]
    passes = Verdict.of(
        client
        for client in on_roll
        if client not in state.audited or found[client] is Outcome.PASSED
    ).passes_bytes
    passed = frozenset(Verdict.decode(passes).passed)
    missing = set(state.honest) - passed - state.away
    if (
        state.kind == PROVED
        and state.bench
        and state.is_attended
        and missing & set(on_roll) - state.outside
    ):
        state = fail(state, "FEW an honest client that answered in time is left out")
    return changed(state, passed=passed)


# --- proved steps


def _proved(
    state: State, choose: Choose, rules: Rules
) -> tuple[State, dict[ClientIndex, Outcome | None]]:
    own = {seat: message(("reveal", "kept")) for seat in state.present_seats}
    options = [message(("reveal", each)) for each in ("kept", "broken")]
    rogue, is_bound = state.rogue_seat, state.plan is not None
    state, values, doubles = bound_step(state, choose, rules, "words", own, options, is_bound)
    revealed = _said(values, rogue)
    if rogue is not None and (state.absent or (is_bound and revealed is None and not doubles)):
        others = [state.seats[seat] for seat in state.present_seats]
        state = certify(state, state.seats[rogue], "absence", others, rules)

    def concluded(judged: Iterable[Wanted] = (), lies: bool = False) -> dict[Bundle, Conclusion]:
        components = {
            each: frozenset(w.component for w in judged if w.client == each.client)
            for each in state.answers
        }
        found = {}
        for place, each in enumerate(state.answers):
            told = tuple((seat, _plan(state, seat)[place], "kept") for seat in state.present_seats)
            if rogue is not None and state.plan is not None:
                told += ((rogue, state.plan[place], revealed),)
            found[each] = _conclusion(
                rules.conclude,
                each.client in state.outside,
                told,
                tuple(seat for seat, row, _ in told if row == "complaint" and seat in each.spoilt),
                components[each],
                lies,
            )
        return found

    found = concluded()
    contents = {each.client: each.content for each in state.roll}
    wanted = [
        Wanted(each.client, component, contents[each.client], each.content)
        for each, conclusion in found.items()
        for component in rules.asks(conclusion)
    ]
    if wanted:
        state, judged, lies = referee_words(state, choose, rules, wanted)
        found = concluded(judged, lies)
    for place, conclusion in enumerate(found.values()):
        if revealed == "broken" and _is_bound(state, place) and rogue not in conclusion.liars:
            state = fail(state, "G5 who repeats the words of others is not named")
        for seat in conclusion.liars:
            others = [state.seats[each] for each in state.present_seats if each != seat]
            state = certify(state, state.seats[seat], "falsehood", others, rules)
    return state, {each.client: conclusion.outcome for each, conclusion in found.items()}


def _is_bound(state: State, place: int) -> bool:
    """Return whether the byzantine member has committed to words on an answer that opens."""
    opens = not set(state.answers[place].spoilt) & set(state.honest_seats)
    return state.plan is not None and state.plan[place] in _WORDS and opens


@cache
def _conclusion(
    conclude: Callable[..., Conclusion],
    is_outside: bool,
    told: tuple[tuple[int, str, str | None], ...],
    standing: tuple[int, ...],
    judged: frozenset[int],
    lies: bool,
) -> Conclusion:
    """Conclude from what seats reported and revealed of one answer, and from a referee's words."""
    rows: dict[int, Row] = {}
    answers: dict[int, Answers] = {}
    for seat, lie, revealed in told:
        if lie == "complaint":
            rows[seat] = _complaint(seat)
        elif lie in _WORDS:
            words = _words(seat, is_outside, lie)
            rows[seat] = ReportRow(words.commitment)
            if revealed == "kept":
                answers[seat] = words
            elif revealed == "broken":
                answers[seat] = _words(seat, is_outside, "own" if lie == "right" else "right")
    turned = _turned(is_outside) if lies else 0
    referee = {index: _word(index, is_outside, turned) for index in judged}
    return conclude(rows, answers, standing=standing, referee=referee)


def _word(component: int, is_outside: bool, wrong_by: int = 0) -> Answer:
    """One component of words that add up to zero if the step is inside the boundary."""
    rest = (1, 2, -3 + is_outside)[component] + wrong_by
    return Answer(0, 0, 0, rest % MODULUS)


def _words(seat: int, is_outside: bool, lie: str) -> Answers:
    own, following = held_indices(seat)
    turned = _turned(is_outside)
    return Answers(
        seat,
        _word(own, is_outside, turned if lie in ("own", "both") else 0),
        _word(following, is_outside, {"following": turned, "both": 5}.get(lie, 0)),
    )


def _turned(is_outside: bool) -> int:
    """The lie that turns the outcome."""
    return -1 if is_outside else 1


@cache
def _complaint(seat: int) -> Complaint:
    point = SealingKey(bytes(31) + b"\1").public
    return Complaint(seat, point, point, point, bytes(31) + b"\1")


# --- the referee


def referee_words(
    state: State, choose: Choose, rules: Rules, wanted: Sequence[Wanted]
) -> tuple[State, list[Wanted], bool]:
    """Have the standby recompute components.

    Returns those for which it answers, for good, and whether it lies.
    """
    if not state.bench or not rules.referee:
        return state, [], False
    rogue, present = state.rogue_seat, state.present_seats
    shown = set(state.seen)
    asked = []
    for each in wanted:
        if each.component in shown or len(shown) < rules.most_shown:
            shown.add(each.component)
            asked.append(each)
    state = changed(state, seen=frozenset(shown))
    handed = {seat: HandOver({each: _keys(each, seat, _KEY) for each in asked}) for seat in present}
    orders: Sequence[Sequence[int]] = (present,)
    if rogue is not None:
        ways = ("the same", "a part", "nothing") if state.attempt == 0 else ("a part",)
        few = choose("the byzantine member wants", ways)
        mine = {"the same": asked, "a part": _part(asked), "nothing": []}[few]
        key = _KEY if few == "a part" else _FALSE_KEY
        handed[rogue] = HandOver({each: _keys(each, rogue, key) for each in mine})
        orders = ((rogue, *present), (rogue, *reversed(present)), (*present, rogue))
    here: list[HandOver] = []
    for seat in choose("seats come to the referee", orders if state.attempt == 0 else orders[:1]):
        here.append(handed[seat])
        found = rules.wanted(here)
        if found and all(_opens(each, here) for each in found):
            break
    else:
        return state, [], False
    if len({each.component for each in found} | shown) > 2:
        state = fail(state, "G4 a referee sees a contribution as a whole")
    if state.byzantine is None or rogue is not None:
        return state, found, False
    said = choose("the referee answers", ("right", "wrong", "nothing"))
    return state, found if said != "nothing" else [], said == "wrong"


def _part(wanted: Sequence[Wanted]) -> list[Wanted]:
    """All that is wanted but for the last client, or but for the last component of the only one."""
    without = [each for each in wanted if each.client != wanted[-1].client] if wanted else []
    return without or list(wanted[:-1])


def _keys(wanted: Wanted, seat: int, key: bytes) -> HandedKeys:
    return HandedKeys(key, key) if wanted.component in held_indices(seat) else HandedKeys()


def _opens(wanted: Wanted, handed: Iterable[HandOver]) -> bool:
    return any(each.keys.get(wanted, HandedKeys()).gradient == _KEY for each in handed)


# --- meetings inside MPC


def _met(
    state: State, choose: Choose, rules: Rules
) -> tuple[State, dict[ClientIndex, Outcome | None]]:
    assert state.kind == MEETING
    valid = [each.client for each in state.answers if each not in state.complained]
    if not valid:
        return state, {}
    right = Results(frozenset(client for client in valid if client not in state.outside))
    wrong = Results(frozenset(valid) - right.passed)
    honest = tuple(state.honest_seats)
    done, crashed = honest, False
    if state.crashes:
        crashed = choose("an honest machine fails", (False, True))
    if crashed:
        done = ()
        state = changed(state, crashes=state.crashes - 1, crashed=state.crashed + 1)
    elif state.rogue_seat is not None:
        done = choose("the meeting ends for", (honest, (), honest[:1], honest[1:]))
    own = {seat: right.encode() if seat in done else Results.ABORTED for seat in honest}
    options = [Results.ABORTED, right.encode(), wrong.encode()]
    state, values, doubles = step(state, choose, rules, "results", own, options, False)
    passed = rules.results(values)
    if passed is None:
        return _aborted(state, rules, values, doubles, crashed), dict.fromkeys(valid)
    if passed != right.passed:
        return fail(state, "AGREE other results than those of the meeting count"), {}
    return state, {
        client: Outcome.PASSED if client in passed else Outcome.OUTSIDE for client in valid
    }


def _aborted(
    state: State,
    rules: Rules,
    values: Mapping[int, bytes | None],
    doubles: bool,
    crashed: bool,
) -> State:
    """Have who was away pay; if nobody was, note that the meeting failed."""
    rogue = state.rogue_seat
    if rogue is not None and values[rogue] is None:
        others = [state.seats[seat] for seat in state.honest_seats]
        return state if doubles else certify(state, state.seats[rogue], "absence", others, rules)
    return changed(state, failed=True, failures=state.failures + (not crashed))
