"""Bound steps: who has what all have committed to ends them without an echo, and keeps one.

Three members with real stores and signatures, over a network in this process. Seat 2 is the liar of
those tests that have one: it says what the test says.
"""

from collections import Counter
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from eth_account import Account

from opfl_chain.chain.keys import sign_statement
from opfl_chain.protocol.echo import Echo, Slot, echo_of
from opfl_chain.protocol.identifiers import round_id_of
from opfl_chain.protocol.statements import SigningDomain
from opfl_chain.roles.member.messages import MOST_IN_SLOT, Messages
from opfl_chain.roles.member.steps import StepEnds, Steps
from opfl_chain.roles.member.store import SCHEMA, MemberStore
from opfl_chain.roles.node import Moment
from opfl_chain.roles.state import State
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Refusal, Request

JOB, NUMBER, SLOT = 3, 0, int(Slot.REVEAL)
ECHO = echo_of(SLOT)
ENDS = StepEnds(said=10, echoed=20)
ACCOUNTS = [Account.from_key(bytes([seat + 1]) * 32) for seat in range(3)]
SEATS = [account.address for account in ACCOUNTS]
DOMAIN = SigningDomain(1, "0x" + "11" * 20)
ROUND = SimpleNamespace(
    id=round_id_of(JOB, NUMBER),
    number=NUMBER,
    opening=b"\7" * 32,
    epoch=0,
    schedule=SimpleNamespace(attest=1_000),
)
WORDS = [f"words of {seat}".encode() for seat in range(3)]
OTHER, THIRD = b"other words of 2", b"still other words of 2"
EVERYBODY = {seat: words.__eq__ for seat, words in enumerate(WORDS)}


class Network:
    """Carries requests among members, but for links that are cut; counts what is posted."""

    def __init__(self):
        self.members = {}
        self.cut = set()
        """Pairs of seats between which nothing arrives."""
        self.posted = Counter()
        """Messages that arrived, by slot."""

    def call(self, method, sender, member, path, body=b"", signature=b""):
        seat = SEATS.index(member)
        if seat not in self.members or {sender, seat} in self.cut:
            raise TransportError(f"{member} does not answer")
        names = ("round", "slot", "seat", "hash")
        parts = path.removeprefix("/rounds/").replace("/messages", "").split("/")
        headers = {"opfl-signature": "0x" + signature.hex()}
        parts = dict(zip(names, parts, strict=False))
        request = Request(method, path, parts, headers, body, "127.0.0.1")
        messages = self.members[seat].messages
        serve = messages.serve if "hash" in parts else messages.serve_heard
        try:
            answer = (messages.take if method == "POST" else serve)(request)
        except Refusal as refusal:
            raise TransportError(str(refusal)) from refusal
        if method == "POST":
            self.posted[int(parts["slot"])] += 1
        return answer.body


class Member:
    """A member that acts when the test says so, and serves all the time."""

    def __init__(self, network, seat, folder):
        self.seat, self.convicted = seat, set()
        self.state = State(folder / f"{seat}.sqlite", "a member", SCHEMA)
        self.store = MemberStore(self.state)
        phases = SimpleNamespace(attest=100)
        node = SimpleNamespace(
            address=SEATS[seat],
            view=SimpleNamespace(seats_of=lambda round_: SEATS, round=lambda number: ROUND),
            job=SimpleNamespace(
                id=JOB, domain=DOMAIN, terms=SimpleNamespace(max_clients=4, phases=phases)
            ),
            moment=Moment(0, 0),
            agenda=SimpleNamespace(again=lambda: None),
            wake=lambda: None,
            sign=lambda statement: sign_statement(ACCOUNTS[seat], statement, DOMAIN),
            peers=SimpleNamespace(
                together=_one_after_the_other,
                post_to_member=lambda member, path, body, signature: network.call(
                    "POST", seat, member, path, body, signature
                ),
                ask_member=lambda member, path, most: network.call("GET", seat, member, path),
            ),
        )
        self.messages = Messages(node, self.store)
        self.steps = Steps(self.store, self.messages, self._convict)

    def _convict(self, round_, member, slot, two):
        assert len({each.hash for each in two}) == 2
        self.convicted.add(SEATS.index(member))

    def tick(self, head, bound=EVERYBODY, words=None):
        """Act once; return the common view if the step is over."""
        words = WORDS[self.seat] if words is None else words
        return self.steps.take_bound(ROUND, SLOT, ENDS, Moment(head, head), lambda: words, bound)

    @property
    def echo(self):
        return self.messages.own(ROUND, ECHO)


def _one_after_the_other(asked, ask):
    for each in asked:
        try:
            yield each, ask(each)
        except TransportError as error:
            yield each, error


class World:
    def __init__(self, folder):
        self.folder, self.network, self._open = folder, Network(), ExitStack()

    def start(self, *seats):
        for seat in seats:
            member = self.network.members[seat] = Member(self.network, seat, self.folder)
            self._open.callback(member.state.close)
        return [self.network.members[seat] for seat in seats]

    def restart(self, seat):
        self.stop(seat).state.close()
        return self.start(seat)[0]

    def stop(self, seat):
        return self.network.members.pop(seat)

    def cut(self, *pair):
        self.network.cut.add(frozenset(pair))

    def liar_says(self, seat, *bodies):
        """Have the liar post messages to a seat."""
        messages = self.network.members[seat].messages
        for body in bodies:
            signature = sign_statement(ACCOUNTS[2], messages.statement(ROUND, SLOT, body), DOMAIN)
            path = f"/rounds/{ROUND.id}/messages/{SLOT}/2"
            self.network.call("POST", 2, SEATS[seat], path, body, signature)

    def close(self):
        self._open.close()


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def values(*said):
    return dict(enumerate(said))


def test_who_has_all_that_fits_ends_the_step_and_sends_no_echo(world):
    members = world.start(0, 1, 2)
    assert members[0].tick(1) is None
    for _ in range(2):
        found = [member.tick(2) for member in members]
    assert [each.values for each in found] == [values(*WORDS)] * 3
    assert all(each.in_time and not each.equivocators for each in found)
    assert world.network.posted == {SLOT: 6}
    assert all(Echo.decode(each.echo.body) == Echo.of(values(*WORDS)) for each in members)


def test_words_that_one_peer_lacks_it_gets_from_the_other(world):
    members = world.start(0, 1, 2)
    world.cut(1, 2)
    for _ in range(2):
        found = [member.tick(2) for member in members]
    assert [each.values for each in found] == [values(*WORDS)] * 3
    assert world.network.posted == {SLOT: 4}


@pytest.mark.parametrize("to_first", [(WORDS[2],), (WORDS[2], OTHER), (OTHER, WORDS[2])])
@pytest.mark.parametrize("to_second", [(), (OTHER,), (OTHER, WORDS[2]), (WORDS[2], OTHER)])
def test_words_that_fit_count_whatever_else_their_author_says(world, to_first, to_second):
    members = world.start(0, 1)
    world.liar_says(0, *to_first)
    world.liar_says(1, *to_second)
    for _ in range(3):
        found = [member.tick(2) for member in members]
    assert [each.values for each in found] == [values(*WORDS)] * 2
    assert world.network.posted[ECHO] == 0
    for member, told in zip(members, (to_first, to_second), strict=True):
        assert OTHER not in told or member.convicted == {2}


def test_words_that_came_when_the_other_one_had_echoed_reach_it_by_the_echo(world):
    first, second = world.start(0, 1)
    world.liar_says(1, OTHER)
    assert [first.tick(9), second.tick(9), second.tick(10)] == [None] * 3
    assert second.echo is not None
    world.liar_says(0, WORDS[2])
    ended = first.tick(9)
    assert ended.values == values(*WORDS)
    assert world.network.posted[ECHO] == 1, "the second one's alone"
    found = second.tick(20)
    assert found.values == values(*WORDS)
    assert found.absent == () and second.convicted == {2}


def test_words_that_do_not_fit_count_when_the_time_is_over(world):
    members = world.start(0, 1)
    for seat in (0, 1):
        world.liar_says(seat, OTHER)
    assert [member.tick(9) for member in members] == [None, None]
    assert not any(member.echo for member in members)
    for head in (10, 20):
        found = [member.tick(head) for member in members]
    assert [each.values for each in found] == [values(*WORDS[:2], OTHER)] * 2
    assert not any(each.equivocators for each in found)
    assert world.network.posted[ECHO] == 2


def test_two_words_of_which_none_fits_count_as_nothing(world):
    members = world.start(0, 1)
    world.liar_says(0, OTHER)
    world.liar_says(1, THIRD)
    for head in (9, 10, 20):
        found = [member.tick(head) for member in members]
    assert [each.values for each in found] == [values(*WORDS[:2], None)] * 2
    assert [each.absent for each in found] == [(), ()]
    assert all(member.convicted == {2} for member in members)


def test_author_that_is_away_is_absent_when_the_time_is_over(world):
    members = world.start(0, 1)
    for head in (9, 10, 19):
        assert [member.tick(head) for member in members] == [None, None]
    found = [member.tick(20) for member in members]
    assert [each.absent for each in found] == [(2,), (2,)]


def test_words_that_come_after_both_echoes_count_for_nobody(world):
    members = world.start(0, 1)
    for head in (9, 10):
        assert [member.tick(head) for member in members] == [None, None]
    world.liar_says(0, WORDS[2])
    found = [member.tick(20) for member in members]
    assert [each.absent for each in found] == [(2,), (2,)]
    assert members[0].tick(21).values == found[1].values


def test_who_is_not_bound_is_not_waited_for_and_says_nothing(world):
    members = world.start(0, 1)
    world.liar_says(0, OTHER)
    bound = {seat: EVERYBODY[seat] for seat in (0, 1)}
    for _ in range(2):
        found = [member.tick(2, bound) for member in members]
    assert [each.values for each in found] == [values(*WORDS[:2], None)] * 2
    assert world.network.posted[ECHO] == 0


def ended_alone(world):
    """The first member has ended; the second lacks the liar's words, and nothing reaches it."""
    first, second = world.start(0, 1)
    world.liar_says(0, WORDS[2])
    second.tick(1)
    assert first.tick(2).values == values(*WORDS)
    return first, second


@pytest.mark.parametrize("head", [3, 15, 25])
def test_who_ended_and_was_killed_has_the_same_view_and_serves_its_echo(world, head):
    first, second = ended_alone(world)
    echo = first.echo
    first = world.restart(0)
    assert first.tick(head).values == values(*WORDS)
    assert first.echo == echo
    assert world.network.posted[ECHO] == 0
    second.messages.ask_all(ROUND, ECHO)
    assert second.messages.first(ROUND, ECHO, 0) == echo
    assert second.tick(9).values == values(*WORDS)


@pytest.mark.parametrize("head", [3, 12, 25])
def test_who_was_killed_between_its_echo_and_the_end_of_the_step_has_the_same_view(world, head):
    first, second = ended_alone(world)
    first.state.write("DELETE FROM concluded")
    first = world.restart(0)
    found = first.tick(head)
    second.tick(head)
    found = found or first.tick(20)
    assert found.values == values(*WORDS)
    assert len(first.store.messages(ROUND.opening, ECHO, SEATS[0])) == 1


def test_who_was_away_until_the_time_was_over_gets_all_of_who_ended(world):
    """Words that others ended with count for it too; it cannot tell who was away."""
    (first,) = world.start(0)
    world.liar_says(0, OTHER, WORDS[2])
    bound = {seat: EVERYBODY[seat] for seat in (0, 2)}
    assert first.tick(2, bound).values == values(WORDS[0], None, WORDS[2])
    (second,) = world.start(1)
    found = second.tick(25)
    assert found.values == values(*WORDS) and not found.in_time


def test_who_has_all_only_when_the_time_is_over_sends_its_echo(world):
    members = world.start(0, 1, 2)
    for pair in ((0, 1), (1, 2), (0, 2)):
        world.cut(*pair)
    assert [member.tick(9) for member in members] == [None] * 3
    world.network.cut.clear()
    for _ in range(2):
        found = [member.tick(12) for member in members]
    assert [each.values for each in found] == [values(*WORDS)] * 3
    assert all(each.in_time for each in found)
    assert world.network.posted == {SLOT: 6, ECHO: 6}


def test_liar_that_serves_other_words_each_time_fills_no_store(world):
    first, second = world.start(0, 1)
    made = []

    class Inventive:
        def serve_heard(self, request):
            made.append(f"invented {len(made)}".encode())
            statement = first.messages.statement(ROUND, SLOT, made[-1])
            signature = sign_statement(ACCOUNTS[2], statement, DOMAIN)
            body = f'{{"body": "0x{made[-1].hex()}", "signature": "0x{signature.hex()}"}}'
            return SimpleNamespace(body=body.encode())

        def take(self, request):
            raise Refusal(503, "no")

    world.network.members[2] = SimpleNamespace(messages=Inventive())
    for head in range(1, 9):
        assert first.tick(head) is None
    assert len(made) >= 8
    assert len(first.messages.kept(ROUND, SLOT, 2)) == MOST_IN_SLOT
    world.liar_says(1, WORDS[2])
    second.tick(9)
    assert first.tick(9).values == values(*WORDS), "what fits has room"
