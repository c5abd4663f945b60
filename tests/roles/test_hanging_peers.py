"""A member that takes requests and never answers does not keep honest ones from their duties.

Timeouts are counted instead of seconds, and only the peer that hangs has a time limit: nothing here
depends on how fast the machine is.
"""

import contextlib
import math

import pytest
from seated import ANSWER, CONTRIBUTION, TickingMember, World

from opfl_chain.adversaries.members import Hangs, SumsFalsely
from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.patience import Patience
from opfl_chain.transport.errors import PeerTimedOut

HANGING = 0
MEMBERS = (1, 2, 3)
BRIEF_SECONDS = 0.5
"""Time limit of requests to the member that hangs; no request to another one ends in time."""
ENDLESS_SECONDS = 3600.0


class HangingMember(Hangs, TickingMember):
    """A member that hangs, and states false sums."""

    SUMS = SumsFalsely.SUMS


class CountedPatience(Patience):
    """Counts timeouts. Nobody is late, so that a slow machine changes nothing."""

    def __init__(self):
        super().__init__(math.inf)
        self.timeouts = 0

    @contextlib.contextmanager
    def waiting(self, peer):
        try:
            with super().waiting(peer) as transfer:
                yield transfer
        except PeerTimedOut:
            self.timeouts += 1
            raise


class EndlessPatience(CountedPatience):
    """The defence switched off."""

    def _require(self, peer):
        pass


@pytest.fixture
def world(proved, tmp_path, monkeypatch):
    with World(proved, tmp_path, cheats={HANGING: HangingMember}, time="real") as world:
        for number in MEMBERS:
            limit(monkeypatch, world, number, BRIEF_SECONDS)
        use(world, CountedPatience)
        world.open()
        yield world
        world.member(HANGING).ending.set()


def limit(monkeypatch, world, number, seconds):
    """Give a member's requests to the one that hangs a time limit, and others none."""
    hanging, http = world.member(HANGING).http.url, world.member(number).peers._http
    for name in ("get", "post"):
        monkeypatch.setattr(http, name, limited(getattr(http, name), hanging, seconds))


def limited(ask, hanging, seconds):
    def ask_in_time(url, *given, **more):
        more["seconds"] = seconds if url == hanging else ENDLESS_SECONDS
        return ask(url, *given, **more)

    return ask_in_time


def use(world, patience):
    for number in MEMBERS:
        world.member(number).peers.patience = patience()


def address(world, number):
    return world.member(number).address


def delivered(world, seats):
    """Let all clients deliver to some seats; return what there is to fetch."""
    found = []
    for client in world.clients:
        bundle = client.bundle(CONTRIBUTION)
        assert set(client.deliver(seats=seats, bundle=bundle)) == {200}
        found.append((client.address, bundle.content_hash))
    return found


def fetched(world, number, wanted, first=None):
    """Fetch bundles from the member that hangs and an honest one; return how many are there."""
    intake, tellers = world.member(number).gradient_intake, [address(world, n) for n in (0, 1)]
    return sum(intake.fetch(world.round, *each, tellers, first) for each in wanted)


@pytest.mark.parametrize(
    ("patience", "timeouts"),
    [(CountedPatience, 1), pytest.param(EndlessPatience, 3, id="the defence off")],
)
def test_bundles_are_fetched_past_a_peer_that_hangs(world, patience, timeouts):
    """A pass waits for it once, not once for each client."""
    wanted = delivered(world, seats=(1,))
    use(world, patience)
    for number in (2, 3):
        assert fetched(world, number, wanted) == 3
        assert world.member(number).peers.patience.timeouts == timeouts


def test_who_named_a_bundle_is_asked_for_it_first(world):
    wanted = delivered(world, seats=(1,))
    assert fetched(world, 2, wanted, first=address(world, 1)) == 3
    assert world.member(2).peers.patience.timeouts == 0


@pytest.mark.parametrize("patience", [CountedPatience, EndlessPatience])
def test_answers_are_collected_past_a_peer_that_hangs(world, patience):
    """Those that honest peers have are here however many are asked for."""
    wanted = delivered(world, seats=(1,))
    use(world, patience)
    member, clients = world.member(2), [client for client, _ in wanted]
    member.gradient_intake.collect(world.round, clients, [address(world, n) for n in (0, 1)])
    assert set(member.gradient_intake.hashes(world.round)) == set(clients)


def test_an_honest_peer_is_not_behind_one_that_hangs(world, monkeypatch):
    """Its answer is here although the other request never ends."""
    limit(monkeypatch, world, 2, ENDLESS_SECONDS)
    peers = world.member(2).peers

    def ask(member):
        return peers.ask_member_json(member, "/rounds/0/roll")

    answers = peers.together([address(world, HANGING), address(world, 1)], ask)
    member, error = next(answers)
    assert member == address(world, 1)
    assert "no round" in str(error)
    answers.close()


def test_duties_that_need_the_chain_alone_come_before_peers(world, monkeypatch):
    for client in world.clients:
        client.deliver()
    world.until(lambda: world.round.roll is not None)
    member, round_, done = world.member(1), world.round, []
    world.player.mine_past(round_.schedule.beacon - 2)
    waiting, send = member.peers.patience.waiting, member.send

    def asked(peer):
        done.append("a peer")
        return waiting(peer)

    def sent(call, key):
        done.append(key.split()[0])
        return send(call, key)

    monkeypatch.setattr(member.peers.patience, "waiting", asked)
    monkeypatch.setattr(member, "send", sent)
    monkeypatch.setattr(member.models, "follow", lambda fetch: fetch(bytes(32)))
    member.tick()
    assert done[:2] == ["partial", "a peer"]
    world.player.mine_past(round_.schedule.beacon)
    done.clear()
    member.store.keep_verdict(round_.opening, Verdict.of({0, 1, 2}).passes_bytes)
    member.tick()
    assert done[:2] == ["attest", "a peer"]


def test_a_member_that_hangs_costs_nobody_but_itself(world):
    """Its false sum is settled too: the standby has what it needs from the others."""
    for client in world.clients:
        client.deliver()
    world.until(lambda: world.round.seed is not None)
    for client in world.clients:
        client.deliver(ANSWER)
    view = world.member(1).view
    world.until(lambda: view.round(0).over is not None)
    assert view.round(0).over == "finalised" and not view.charges()
    assert len(Verdict.decode(view.decided_passes(view.round(0))).passed) == 3
    world.until(lambda: view.epoch == 1)
    assert {(each.member, each.fault) for each in view.penalties()} == {
        (address(world, HANGING), MemberFault.FALSEHOOD)
    }
    assert sum(world.member(number).peers.patience.timeouts for number in (1, 2)) > 0
